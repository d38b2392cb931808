/** Which resource or object of the API is meant, and the URL path it has. */

/** A kind of object by its REST name; group '' is the core group. */
export interface ResourceRef {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
}

/** One object, or one subresource of it; without a namespace it is cluster-scoped. */
export interface ObjectRef extends ResourceRef {
  readonly namespace?: string;
  readonly name: string;
  readonly subresource?: string;
}

/** A resource, of one namespace or of all of them. */
export interface CollectionRef extends ResourceRef {
  readonly namespace?: string;
}

export const PODS: ResourceRef = { group: '', version: 'v1', plural: 'pods' };
export const EVENTS: ResourceRef = { group: 'events.k8s.io', version: 'v1', plural: 'events' };
export const SECRETS: ResourceRef = { group: '', version: 'v1', plural: 'secrets' };
export const NAMESPACES: ResourceRef = { group: '', version: 'v1', plural: 'namespaces' };
export const LIMIT_RANGES: ResourceRef = { group: '', version: 'v1', plural: 'limitranges' };
export const RESOURCE_QUOTAS: ResourceRef = { group: '', version: 'v1', plural: 'resourcequotas' };
export const LEASES: ResourceRef = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
};
export const MUTATING_WEBHOOK_CONFIGURATIONS: ResourceRef = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'mutatingwebhookconfigurations',
};
export const VALIDATING_WEBHOOK_CONFIGURATIONS: ResourceRef = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'validatingwebhookconfigurations',
};
export const SELF_SUBJECT_ACCESS_REVIEWS: ResourceRef = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
};
export const CUSTOM_RESOURCE_DEFINITIONS: ResourceRef = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};
export const STARTUP_CPU_BOOSTS: ResourceRef = {
  group: 'autoscaling.x-k8s.io',
  version: 'v1alpha1',
  plural: 'startupcpuboosts',
};

/** The discovery document of the resource's group and version. */
export function groupVersionPath({ group, version }: ResourceRef): string {
  return group === ''
    ? `/api/${segment('version', version)}`
    : `/apis/${segment('group', group)}/${segment('version', version)}`;
}

export function collectionPath(ref: CollectionRef): string {
  const namespace =
    ref.namespace === undefined ? '' : `/namespaces/${segment('namespace', ref.namespace)}`;
  return `${groupVersionPath(ref)}${namespace}/${segment('plural', ref.plural)}`;
}

export function objectPath(ref: ObjectRef): string {
  const object = `${collectionPath(ref)}/${segment('name', ref.name)}`;
  return ref.subresource === undefined
    ? object
    : `${object}/${segment('subresource', ref.subresource)}`;
}

/** For messages: `pods/resize default/web-0`. */
export function describeRef(ref: CollectionRef & Partial<ObjectRef>): string {
  const resource = ref.group === '' ? ref.plural : `${ref.plural}.${ref.group}`;
  const subresource = ref.subresource === undefined ? '' : `/${ref.subresource}`;
  const name = [ref.namespace, ref.name].filter((part) => part !== undefined).join('/');
  return `${resource}${subresource}${name === '' ? '' : ` ${name}`}`;
}

/** Dot segments would leave the collection once a proxy normalizes the path. */
function segment(what: string, value: string): string {
  if (value === '' || value === '.' || value === '..') {
    throw new RangeError(`${what} must be a name, not ${JSON.stringify(value)}`);
  }
  return encodeURIComponent(value);
}
