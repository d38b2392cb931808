/** The part of OpenAPI v3 that a Kubernetes structural schema uses, and the TypeScript type that such a schema describes. */

/** One entry of `x-kubernetes-validations`: a CEL rule and what is said when it is false. */
export interface ValidationRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
  readonly reason?: 'FieldValueRequired' | 'FieldValueInvalid' | 'FieldValueForbidden';
  /** The rule also runs on create, where `oldSelf` is an empty optional. */
  readonly optionalOldSelf?: true;
}

export interface Schema {
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly format?: 'int32' | 'int64' | 'date-time';
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic';
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];
}

/** The value that a schema written `as const` lets in: required properties stay required, an enum becomes a union. */
export type FromSchema<S> = S extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : S extends { readonly 'x-kubernetes-int-or-string': true }
    ? number | string
    : S extends { readonly type: 'string' }
      ? string
      : S extends { readonly type: 'integer' }
        ? number
        : S extends { readonly type: 'boolean' }
          ? boolean
          : S extends { readonly type: 'array'; readonly items: infer Item }
            ? readonly FromSchema<Item>[]
            : S extends { readonly properties: infer Properties }
              ? ObjectFrom<Properties, RequiredKeys<S>>
              : S extends { readonly additionalProperties: infer Value }
                ? Readonly<Record<string, FromSchema<Value>>>
                : S extends { readonly type: 'object' }
                  ? Readonly<Record<string, unknown>>
                  : never;

type RequiredKeys<S> = S extends { readonly required: readonly (infer Key)[] } ? Key : never;

/** One flat object type, so that editors and error messages show the fields and not the derivation. */
type ObjectFrom<Properties, Required> = Flatten<
  {
    readonly [Key in keyof Properties as Key extends Required ? Key : never]: FromSchema<
      Properties[Key]
    >;
  } & {
    readonly [Key in keyof Properties as Key extends Required ? never : Key]?: FromSchema<
      Properties[Key]
    >;
  }
>;

type Flatten<T> = { readonly [Key in keyof T]: T[Key] };
