/**
 * Plays scheduler and kubelet through the real API, for an API server without nodes: pods get
 * bound, run, become ready and have their resizes accepted or refused, as
 * https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/ describes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ApiError, PODS } from '../../src/kube';
import type { JsonObject, KubeClient, ObjectRef, ResourceRef } from '../../src/kube';

const NODES: ResourceRef = { group: '', version: 'v1', plural: 'nodes' };
const BINDINGS: ResourceRef = { group: '', version: 'v1', plural: 'bindings' };

const WATCH_SECONDS = 300;

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export interface NodeOptions {
  readonly name?: string;
  /** What its pods may ask for together; a resize above it is refused by the API server. */
  readonly allocatable?: Readonly<Record<string, string>>;
}

export interface AtTime {
  /** When it happened; now by default. The API keeps whole seconds. */
  readonly at?: Date;
}

/** What the node does with the resize of a pod. */
export type ResizeAnswer = 'Accept' | 'Defer' | 'Infeasible' | 'Ignore';

export interface AutoOptions {
  /** `Accept` by default; asked once for each generation of a pod. */
  readonly answer?: (pod: PodName) => ResizeAnswer;
}

export interface AutoKubelet {
  /** Rejects with what went wrong meanwhile, if anything did. */
  stop(): Promise<void>;
}

export class KubeletPlayer {
  readonly nodeName: string;
  readonly #client: KubeClient;
  /** The last write to each pod: two at once would lose one's changes to the lists of a status. */
  readonly #writes = new Map<string, Promise<unknown>>();

  private constructor(client: KubeClient, nodeName: string) {
    this.#client = client;
    this.nodeName = nodeName;
  }

  /** Creates the node, or takes the one that has the name. */
  static async start(client: KubeClient, options: NodeOptions = {}): Promise<KubeletPlayer> {
    const { name = 'player', allocatable = { cpu: '16', memory: '64Gi', pods: '1000' } } = options;
    const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name };
    try {
      await client.create(NODES, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels },
      });
    } catch (error) {
      if (!isFailure(error, 'AlreadyExists')) throw error;
    }
    await client.patch(
      { ...NODES, name, subresource: 'status' },
      {
        type: 'merge',
        body: {
          status: {
            capacity: allocatable,
            allocatable,
            conditions: [condition('Ready', 'True', {}, { reason: 'KubeletReady' })],
          },
        },
      },
    );
    return new KubeletPlayer(client, name);
  }

  /** As the scheduler does: the pod gets its node and the condition PodScheduled. */
  async bind(pod: PodName, time: AtTime = {}): Promise<void> {
    await this.#client.create(
      { ...BINDINGS, namespace: pod.namespace },
      {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: pod,
        target: { apiVersion: 'v1', kind: 'Node', name: this.nodeName },
      },
    );
    if (time.at === undefined) return;
    await this.#writeStatus(pod, (now) => ({
      conditions: withConditions(now, [condition('PodScheduled', 'True', time)]),
    }));
  }

  /** As the scheduler does where no node has room. */
  async findsNoNode(
    pod: PodName,
    message = '0/1 nodes are available: 1 Insufficient cpu.',
  ): Promise<void> {
    const why = { reason: 'Unschedulable', message };
    await this.#writeStatus(pod, (now) => ({
      conditions: withConditions(now, [condition('PodScheduled', 'False', {}, why)]),
    }));
  }

  /** The kubelet has taken the pod in, with the CPU of the spec, and fetches its images. */
  async admitted(pod: PodName, time: AtTime = {}): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      phase: 'Pending',
      startTime: timestamp(time),
      observedGeneration: now.metadata.generation,
      containerStatuses: now.spec.containers.map((container) => ({
        ...startedStatus(container, time),
        state: { waiting: { reason: 'ContainerCreating' } },
      })),
      conditions: withConditions(now, [
        condition('Initialized', 'True', time),
        ...readiness('False', time),
      ]),
    }));
  }

  /** Every container has started with the CPU of the spec, and none is ready. */
  async running(pod: PodName, time: AtTime = {}): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      phase: 'Running',
      startTime: timestamp(time),
      observedGeneration: now.metadata.generation,
      initContainerStatuses: (now.spec.initContainers ?? []).map((container) =>
        container.restartPolicy === 'Always'
          ? startedStatus(container, time)
          : completedStatus(container, time),
      ),
      containerStatuses: now.spec.containers.map((container) => startedStatus(container, time)),
      conditions: withConditions(now, [
        condition('Initialized', 'True', time),
        ...readiness('False', time),
      ]),
    }));
  }

  /** Startup and readiness probes of every container have passed. */
  async ready(pod: PodName, time: AtTime = {}): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      containerStatuses: statusesOf(now).map((status) => ({
        ...status,
        started: true,
        ready: true,
      })),
      conditions: withConditions(now, readiness('True', time)),
    }));
  }

  async notReady(pod: PodName, time: AtTime = {}): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      containerStatuses: statusesOf(now).map((status) => ({ ...status, ready: false })),
      conditions: withConditions(now, readiness('False', time)),
    }));
  }

  /** A container died and runs again, with the CPU that the node had allocated to it. */
  async restarted(pod: PodName, container: string, time: AtTime = {}): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      containerStatuses: statusesOf(now).map((status) =>
        status.name === container
          ? {
              ...status,
              restartCount: status.restartCount + 1,
              started: false,
              ready: false,
              state: { running: { startedAt: timestamp(time) } },
              lastState: {
                terminated: { exitCode: 137, reason: 'OOMKilled', finishedAt: timestamp(time) },
              },
            }
          : status,
      ),
      conditions: withConditions(now, readiness('False', time)),
    }));
  }

  /** The containers have the CPU and memory of the spec now. */
  async acceptResize(pod: PodName): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      observedGeneration: now.metadata.generation,
      containerStatuses: resizedStatuses(statusesOf(now), now.spec.containers),
      initContainerStatuses: resizedStatuses(
        now.status?.initContainerStatuses ?? [],
        (now.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always'),
      ),
      conditions: withConditions(now, [], ['PodResizePending', 'PodResizeInProgress']),
    }));
  }

  /** The node has no room at present; it tries again later by itself. */
  async deferResize(
    pod: PodName,
    message = 'Node did not have enough resource: cpu',
  ): Promise<void> {
    await this.#pendResize(pod, 'Deferred', message);
  }

  /** The node cannot, and does not try again before the spec changes. */
  async infeasibleResize(
    pod: PodName,
    message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy',
  ): Promise<void> {
    await this.#pendResize(pod, 'Infeasible', message);
  }

  /** From now on answers the resizes of its pods, and removes those that are deleted. */
  auto({ answer = () => 'Accept' }: AutoOptions = {}): AutoKubelet {
    const ended = new AbortController();
    const problems: unknown[] = [];
    const loop = this.#watchPods(ended.signal, answer, problems);
    return {
      stop: async () => {
        ended.abort();
        await loop;
        if (problems.length > 0) throw new AggregateError(problems, 'the played kubelet failed');
      },
    };
  }

  async #watchPods(
    signal: AbortSignal,
    answer: (pod: PodName) => ResizeAnswer,
    problems: unknown[],
  ): Promise<void> {
    while (!signal.aborted) {
      await this.#watchOnce(signal, answer).catch((error: unknown) => {
        // The API server may go away and come back; anything else is a bug of ours.
        if (!(error instanceof ApiError)) problems.push(error);
      });
      await delay(100);
    }
  }

  async #watchOnce(signal: AbortSignal, answer: (pod: PodName) => ResizeAnswer): Promise<void> {
    const ours = { fieldSelector: `spec.nodeName=${this.nodeName}`, signal };
    const { items, resourceVersion } = await this.#client.list(PODS, ours);
    for (const pod of items) await this.#keepUp(pod, answer);
    const watch = { ...ours, resourceVersion, timeoutSeconds: WATCH_SECONDS };
    for await (const { type, object } of this.#client.watch(PODS, watch)) {
      if (type === 'ADDED' || type === 'MODIFIED') await this.#keepUp(object, answer);
    }
  }

  /** What a kubelet does when it sees a new version of one of its pods. */
  async #keepUp(object: unknown, answer: (pod: PodName) => ResizeAnswer): Promise<void> {
    const { metadata, status } = podSchema.parse(object);
    const pod = { namespace: metadata.namespace, name: metadata.name };
    try {
      if (metadata.deletionTimestamp !== undefined) {
        await this.#client.delete(refOf(pod), { gracePeriodSeconds: 0 });
        return;
      }
      const starts = (status?.containerStatuses ?? []).length > 0;
      if (starts && metadata.generation > (status?.observedGeneration ?? 0)) {
        // What has been allocated already needs no room, whatever was refused in between.
        await this.#answerResize(pod, hasNothingToDo(object) ? 'Accept' : answer(pod));
      }
    } catch (error) {
      if (!isFailure(error, 'NotFound')) throw error;
    }
  }

  async #answerResize(pod: PodName, answer: ResizeAnswer): Promise<void> {
    switch (answer) {
      case 'Accept':
        return this.acceptResize(pod);
      case 'Defer':
        return this.deferResize(pod);
      case 'Infeasible':
        return this.infeasibleResize(pod);
      case 'Ignore':
        return;
    }
  }

  async #pendResize(pod: PodName, reason: string, message: string): Promise<void> {
    await this.#writeStatus(pod, (now) => ({
      observedGeneration: now.metadata.generation,
      conditions: withConditions(now, [
        condition(
          'PodResizePending',
          'True',
          {},
          { reason, message, observedGeneration: now.metadata.generation },
        ),
      ]),
    }));
  }

  /** One write at a time for each pod, made from what the API server has then. */
  async #writeStatus(pod: PodName, change: (now: Pod) => JsonObject): Promise<void> {
    const key = `${pod.namespace}/${pod.name}`;
    const write = async (): Promise<void> => {
      const now = podSchema.parse(await this.#client.get(refOf(pod)));
      const body = { status: change(now) };
      await this.#client.patch({ ...refOf(pod), subresource: 'status' }, { type: 'merge', body });
    };
    const mine = (this.#writes.get(key) ?? Promise.resolve()).then(write, write);
    this.#writes.set(key, mine);
    try {
      await mine;
    } finally {
      if (this.#writes.get(key) === mine) this.#writes.delete(key);
    }
  }
}

const resourcesSchema = z.object({
  requests: z.record(z.string(), z.string()).optional(),
  limits: z.record(z.string(), z.string()).optional(),
});

const containerSchema = z.object({
  name: z.string(),
  image: z.string(),
  restartPolicy: z.string().optional(),
  resources: resourcesSchema.default({}),
});

const statusSchema = z.looseObject({ name: z.string(), restartCount: z.number() });

const conditionSchema = z.looseObject({ type: z.string(), status: z.string() });

/** The part of a pod that a kubelet reads here; what it does not know of a status it keeps. */
const podSchema = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    generation: z.number(),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z.object({
    containers: z.array(containerSchema),
    initContainers: z.array(containerSchema).optional(),
  }),
  status: z
    .object({
      observedGeneration: z.number().optional(),
      conditions: z.array(conditionSchema).optional(),
      containerStatuses: z.array(statusSchema).optional(),
      initContainerStatuses: z.array(statusSchema).optional(),
    })
    .optional(),
});

type Pod = z.output<typeof podSchema>;
type Container = z.output<typeof containerSchema>;
type ContainerStatus = z.output<typeof statusSchema>;
type Condition = z.output<typeof conditionSchema>;

/** As the kubelet publishes it: requests as allocated, and requests with limits as in force. */
function allocation({ resources }: Container): JsonObject {
  return { resources, allocatedResources: resources.requests ?? {} };
}

function startedStatus(container: Container, time: AtTime): JsonObject {
  return {
    name: container.name,
    image: container.image,
    imageID: `player/${container.image}`,
    containerID: `player://${container.name}`,
    restartCount: 0,
    started: false,
    ready: false,
    state: { running: { startedAt: timestamp(time) } },
    ...allocation(container),
  };
}

function completedStatus(container: Container, time: AtTime): JsonObject {
  const at = timestamp(time);
  return {
    ...startedStatus(container, time),
    ready: true,
    state: {
      terminated: { exitCode: 0, reason: 'Completed', startedAt: at, finishedAt: at },
    },
  };
}

function statusesOf(pod: Pod): readonly ContainerStatus[] {
  return pod.status?.containerStatuses ?? [];
}

function hasNothingToDo(object: unknown): boolean {
  const pod = podSchema.parse(object);
  return pod.spec.containers.every(({ name, resources }) => {
    const allocated = statusesOf(pod).find((status) => status.name === name)?.allocatedResources;
    return isDeepStrictEqual(allocated, resources.requests ?? {});
  });
}

function resizedStatuses(
  statuses: readonly ContainerStatus[],
  containers: readonly Container[],
): readonly ContainerStatus[] {
  return statuses.map((status) => {
    const container = containers.find(({ name }) => name === status.name);
    return container === undefined ? status : { ...status, ...allocation(container) };
  });
}

function readiness(status: 'True' | 'False', time: AtTime): readonly Condition[] {
  const why = status === 'True' ? {} : { reason: 'ContainersNotReady' };
  return [condition('ContainersReady', status, time, why), condition('Ready', status, time, why)];
}

function condition(type: string, status: string, time: AtTime, more: JsonObject = {}): Condition {
  return { type, status, lastTransitionTime: timestamp(time), ...more };
}

function withConditions(
  pod: Pod,
  changed: readonly Condition[],
  removed: readonly string[] = [],
): readonly Condition[] {
  const kept = (pod.status?.conditions ?? []).filter(
    ({ type }) => !removed.includes(type) && !changed.some((each) => each.type === type),
  );
  return [...kept, ...changed];
}

function refOf(pod: PodName): ObjectRef {
  return { ...PODS, namespace: pod.namespace, name: pod.name };
}

function timestamp({ at = new Date() }: AtTime): string {
  return at.toISOString();
}

function isFailure(error: unknown, kind: ApiError['failure']['kind']): boolean {
  return error instanceof ApiError && error.failure.kind === kind;
}
