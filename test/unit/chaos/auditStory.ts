/** Makes the audit log of one pod's life, right or wrong in one place. */
import { BOOST_KEY } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import type { AuditEvent } from '../../support/auditLog';
import { NAMESPACE, boostManifest, podManifest } from '../../api/chaos/shapes';
import type { BoostName, BoostSpec, Shape } from '../../api/chaos/shapes';

export const CONTROLLER = 'controller-1';
export const OTHER_CONTROLLER = 'controller-2';
export const ADMISSION = 'admission-1';
export const KUBELET = 'kubelet';

export const POD = 'pod-1';

type Change = Partial<AuditEvent>;

/** Times are seconds from the beginning of the story. */
export class AuditStory {
  readonly events: AuditEvent[] = [];
  readonly #shape: Shape;
  readonly #boost: BoostName;
  #count = 0;

  constructor(shape: Shape = 'RequestOnly', boost: BoostName = 'until-ready') {
    this.#shape = shape;
    this.#boost = boost;
  }

  /** The pod as it is stored; `cpu` is its request, or request and limit: `500m/2`, `500m/-`. */
  pod(cpu: string, marked: 'marked' | 'plain', generation: number): JsonObject {
    this.#count += 1;
    const { metadata, spec, ...rest } = podManifest(POD, this.#shape, this.#boost);
    const { labels, ...names } = asObject(metadata);
    const [first] = asList(asObject(spec).containers);
    const { resources, ...container } = asObject(first);
    const [request = '', limit] = cpu.split('/');
    const lists = {
      requests: { cpu: request },
      ...(limit === undefined ? {} : { limits: limit === '-' ? {} : { cpu: limit } }),
    };
    return {
      ...rest,
      metadata: {
        ...names,
        labels: {
          ...asObject(labels),
          ...(marked === 'marked' ? { [BOOST_KEY]: this.#boost } : {}),
        },
        generation,
        resourceVersion: String(this.#count),
      },
      spec: {
        ...asObject(spec),
        containers: [{ ...container, resources: { ...asObject(resources), ...lists } }],
      },
    };
  }

  boost(atSeconds: number, spec: BoostSpec | undefined): this {
    const response = spec === undefined ? {} : boostManifest(this.#boost, spec);
    return this.#add(atSeconds, {
      verb: spec === undefined ? 'delete' : 'patch',
      resource: 'startupcpuboosts',
      name: this.#boost,
      response,
    });
  }

  create(atSeconds: number, response: JsonObject): this {
    return this.#add(atSeconds, { verb: 'create', code: 201, response });
  }

  bind(atSeconds: number): this {
    return this.#add(atSeconds, { verb: 'create', resource: 'bindings' });
  }

  ready(atSeconds: number, response: JsonObject): this {
    const request = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
    return this.#add(atSeconds, { verb: 'patch', subresource: 'status', request, response });
  }

  status(atSeconds: number, response: JsonObject): this {
    return this.#add(atSeconds, { verb: 'patch', subresource: 'status', response });
  }

  resize(atSeconds: number, response: JsonObject, change: Change = {}): this {
    const user = CONTROLLER;
    return this.#add(atSeconds, {
      verb: 'patch',
      subresource: 'resize',
      user,
      response,
      ...change,
    });
  }

  patch(atSeconds: number, response: JsonObject, change: Change = {}): this {
    return this.#add(atSeconds, { verb: 'patch', user: CONTROLLER, response, ...change });
  }

  delete(atSeconds: number): this {
    return this.#add(atSeconds, { verb: 'delete' });
  }

  lease(atSeconds: number, user: string): this {
    const response = { spec: { holderIdentity: user } };
    return this.#add(atSeconds, {
      verb: 'update',
      resource: 'leases',
      name: 'lease',
      user,
      response,
    });
  }

  #add(atSeconds: number, change: Change): this {
    const at = epoch(atSeconds);
    const id = `audit-${this.events.length}`;
    const event: AuditEvent = {
      id,
      stage: 'Complete',
      receivedAt: at - 5,
      at,
      verb: 'patch',
      user: KUBELET,
      resource: 'pods',
      subresource: '',
      namespace: NAMESPACE,
      name: POD,
      code: 200,
      request: undefined,
      response: undefined,
      ...change,
    };
    const received = {
      ...event,
      stage: 'Received',
      at: at - 5,
      code: 0,
      response: undefined,
    } as const;
    this.events.push(received);
    if (event.stage === 'Complete') this.events.push(event);
    return this;
  }
}

export function epoch(seconds: number): number {
  return 1_800_000_000_000 + seconds * 1_000;
}

function asObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
