/** A pod on a real node that starts until the test lets it be ready. */
import { z } from 'zod';
import { BOOST_KEY } from '../../../src/boost-engine';
import { PODS } from '../../../src/kube';
import type { JsonObject, ObjectRef } from '../../../src/kube';
import { aContainer, aPod } from '../builders';
import type { ResourceLists } from '../builders';
import { eventually } from '../eventually';
import { cgroupsOf } from './cgroup';
import type { ContainerCgroups } from './cgroup';
import { NODE_PATIENCE_MS } from './cluster';
import type { NodeCluster } from './cluster';

export interface StartingPodOptions {
  readonly namespace: string;
  readonly name: string;
  readonly resources: ResourceLists;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: JsonObject;
}

const READY_FILE = '/tmp/ready';

const resourcesSchema = z.looseObject({
  requests: z.record(z.string(), z.string()).optional(),
  limits: z.record(z.string(), z.string()).optional(),
});
const containerSchema = z.looseObject({ name: z.string(), resources: resourcesSchema });
const statusSchema = z.looseObject({
  name: z.string(),
  containerID: z.string().optional(),
  restartCount: z.int(),
  started: z.boolean().optional(),
});
const podSchema = z.looseObject({
  metadata: z.looseObject({
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.looseObject({
    containers: z.array(containerSchema),
    initContainers: z.array(containerSchema).default([]),
  }),
  status: z.looseObject({
    conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]),
    qosClass: z.string().optional(),
    containerStatuses: z.array(statusSchema).default([]),
    initContainerStatuses: z.array(statusSchema).default([]),
  }),
});

export type StoredPod = z.infer<typeof podSchema>;
export type StoredResources = z.infer<typeof resourcesSchema>;

export function parsePod(object: JsonObject): StoredPod {
  return podSchema.parse(object);
}

export class StartingPod {
  readonly ref: ObjectRef;
  readonly #cluster: NodeCluster;

  private constructor(cluster: NodeCluster, ref: ObjectRef) {
    this.#cluster = cluster;
    this.ref = ref;
  }

  static async create(cluster: NodeCluster, options: StartingPodOptions): Promise<StartingPod> {
    const { namespace, name, resources, labels, spec } = options;
    await cluster.client.create(
      { ...PODS, namespace },
      aPod({
        name,
        namespace,
        containers: [startingContainer(resources)],
        ...(labels === undefined ? {} : { labels }),
        ...(spec === undefined ? {} : { spec }),
      }),
    );
    return new StartingPod(cluster, { ...PODS, namespace, name });
  }

  async stored(): Promise<StoredPod> {
    return parsePod(await this.#cluster.client.get(this.ref));
  }

  /** Resolves with the container's id; a container has one from its start to its end. */
  async running(container = 'app'): Promise<string> {
    return eventually(async () => {
      const status = statusOf(await this.stored(), container);
      if (status?.containerID === undefined || status.started !== true) {
        throw new Error(`${container} does not run: ${JSON.stringify(status)}`);
      }
      return status.containerID;
    }, NODE_PATIENCE_MS);
  }

  async cgroups(container = 'app'): Promise<ContainerCgroups> {
    return cgroupsOf(await this.running(container));
  }

  /** The readiness probe succeeds from now on. */
  async letReady(): Promise<void> {
    const { namespace = '', name } = this.ref;
    await this.#cluster.kubectl(
      'exec',
      '-n',
      namespace,
      name,
      '-c',
      'app',
      '--',
      'touch',
      READY_FILE,
    );
  }

  /** Resolves when nothing of a boost is left on it but why it ended. */
  async unmarked(): Promise<StoredPod> {
    return eventually(async () => {
      const pod = await this.stored();
      if (isMarked(pod)) throw new Error(`still marked: ${JSON.stringify(pod.metadata)}`);
      return pod;
    }, NODE_PATIENCE_MS);
  }
}

export function isMarked({ metadata }: StoredPod): boolean {
  return BOOST_KEY in metadata.labels || BOOST_KEY in metadata.annotations;
}

export function resourcesOf(pod: StoredPod, container = 'app'): StoredResources | undefined {
  const containers = [...pod.spec.containers, ...pod.spec.initContainers];
  return containers.find(({ name }) => name === container)?.resources;
}

export function statusOf(
  { status }: StoredPod,
  container = 'app',
): z.infer<typeof statusSchema> | undefined {
  const statuses = [...status.containerStatuses, ...status.initContainerStatuses];
  return statuses.find(({ name }) => name === container);
}

function startingContainer(resources: ResourceLists): JsonObject {
  return aContainer({
    image: 'local/busybox:1',
    resources,
    readinessProbe: { exec: { command: ['test', '-f', READY_FILE] }, periodSeconds: 1 },
  });
}
