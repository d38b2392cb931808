/**
 * Plays the controllers of Deployments, Jobs and EndpointSlices for an API server without nodes. Pods
 * are real processes (playedPod.ts), and what is reported is what became of them. A rollout starts all
 * new pods and stops the old ones when those are ready.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { ApiError } from '../../src/kube';
import type { JsonObject, KubeClient, ObjectRef, ResourceRef } from '../../src/kube';
import { ownAddress } from './certificateStage';
import type { ControlPlane } from './controlPlane';
import { PlayedPod, podTemplateSchema } from './playedPod';
import type { PodTemplate } from './playedPod';

export const DEPLOYMENTS: ResourceRef = { group: 'apps', version: 'v1', plural: 'deployments' };
export const JOBS: ResourceRef = { group: 'batch', version: 'v1', plural: 'jobs' };
const SERVICES: ResourceRef = { group: '', version: 'v1', plural: 'services' };
const SLICES: ResourceRef = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' };

const PERIOD_MS = 100;

/** The images that are the bundle; pods of others wait for ever, as for an image that is not there. */
const OWN_IMAGE = /^kube-startup-cpu-boost[:@]/;

const metadataSchema = z.looseObject({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  generation: z.int().optional(),
});

const deploymentSchema = z.looseObject({
  metadata: metadataSchema,
  spec: z.looseObject({ replicas: z.int(), template: podTemplateSchema }),
});

const jobSchema = z.looseObject({
  metadata: metadataSchema,
  spec: z.looseObject({
    backoffLimit: z.int(),
    activeDeadlineSeconds: z.int().optional(),
    podFailurePolicy: z
      .looseObject({
        rules: z.array(
          z.looseObject({
            action: z.string(),
            onExitCodes: z.looseObject({ operator: z.literal('In'), values: z.array(z.int()) }),
          }),
        ),
      })
      .optional(),
    template: podTemplateSchema,
  }),
});

const serviceSchema = z.looseObject({
  metadata: metadataSchema,
  spec: z.looseObject({
    selector: z.record(z.string(), z.string()).optional(),
    ports: z.array(
      z.looseObject({
        name: z.string().optional(),
        targetPort: z.union([z.int(), z.string()]),
      }),
    ),
  }),
});

type Deployment = z.output<typeof deploymentSchema>;
type Job = z.output<typeof jobSchema>;
type Service = z.output<typeof serviceSchema>;

/** A pod of a Job that has come to its end. */
export interface EndedJob {
  readonly name: string;
  readonly code: number | null;
  readonly output: string;
  readonly env: Readonly<Record<string, string>>;
}

interface Rollout {
  readonly deployment: Deployment;
  readonly pods: PlayedPod[];
}

export class WorkloadPlayer {
  readonly ended: EndedJob[] = [];
  readonly #controlPlane: ControlPlane;
  readonly #host = ownAddress();
  /** By the uid of the Deployment. */
  readonly #rollouts = new Map<string, Rollout>();
  /** By the uid of the Job. */
  readonly #jobs = new Map<
    string,
    { readonly stop: AbortController; readonly done: Promise<void> }
  >();
  readonly #slices = new Set<string>();
  /** Pods that are going; nothing waits for them but the end. */
  readonly #going = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #loop: Promise<void>;

  constructor(controlPlane: ControlPlane) {
    this.#controlPlane = controlPlane;
    this.#loop = this.#run();
  }

  /** Rejects with what went wrong meanwhile, if anything did. */
  async stop(): Promise<void> {
    this.#stop.abort();
    try {
      await this.#loop;
    } finally {
      for (const { stop, done } of this.#jobs.values()) {
        stop.abort();
        await done;
      }
      for (const { pods } of this.#rollouts.values())
        pods.forEach((pod) => {
          this.#end(pod);
        });
      await Promise.all(this.#going);
    }
  }

  /** Of the Deployment of this name, those that run now. */
  podsOf(name: string): readonly PlayedPod[] {
    const found = [...this.#rollouts.values()].find(
      ({ deployment }) => deployment.metadata.name === name,
    );
    return found === undefined ? [] : [...found.pods];
  }

  get #client(): KubeClient {
    return this.#controlPlane.client;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#playDeployments();
      await this.#playJobs();
      await this.#playSlices();
      await delay(PERIOD_MS);
    }
  }

  async #playDeployments(): Promise<void> {
    const found = (await this.#list(DEPLOYMENTS)).map((item) => deploymentSchema.parse(item));
    for (const deployment of found.filter((each) => isOurs(each.spec.template))) {
      const { uid } = deployment.metadata;
      const pods = this.#rollouts.get(uid)?.pods ?? [];
      this.#rollouts.set(uid, { deployment, pods });
      await this.#rollOut(deployment, pods);
    }
    const uids = new Set(found.map(({ metadata }) => metadata.uid));
    for (const [uid, { pods }] of this.#rollouts) {
      if (uids.has(uid)) continue;
      this.#rollouts.delete(uid);
      pods.forEach((pod) => {
        this.#end(pod);
      });
    }
  }

  async #rollOut(deployment: Deployment, pods: PlayedPod[]): Promise<void> {
    const { metadata, spec } = deployment;
    const isCurrent = (pod: PlayedPod): boolean =>
      JSON.stringify(pod.template) === JSON.stringify(spec.template);
    while (pods.filter(isCurrent).length < spec.replicas) {
      const pod = await this.#startPod(metadata.namespace, metadata.name, spec.template);
      if (pod === undefined) break;
      pods.push(pod);
      void pod.exited.then(() => {
        const at = pods.indexOf(pod);
        if (at !== -1) pods.splice(at, 1);
      });
    }
    await Promise.all(pods.map((pod) => pod.probe()));
    const current = pods.filter(isCurrent);
    const ready = current.filter(({ isReady }) => isReady);
    const surplus = [
      ...current.slice(spec.replicas),
      ...(ready.length >= spec.replicas ? pods.filter((pod) => !isCurrent(pod)) : []),
    ];
    for (const pod of surplus) {
      pods.splice(pods.indexOf(pod), 1);
      this.#end(pod);
    }
    await this.#report(
      { ...DEPLOYMENTS, namespace: metadata.namespace, name: metadata.name },
      deploymentStatus(deployment, {
        all: pods.length,
        ready: ready.length,
        current: current.length,
      }),
    );
  }

  /** Undefined where something that it needs is not there yet, such as its ServiceAccount. */
  async #startPod(
    namespace: string,
    owner: string,
    template: PodTemplate,
  ): Promise<PlayedPod | undefined> {
    const name = `${owner}-${randomUUID().slice(0, 8)}`;
    const place = { controlPlane: this.#controlPlane, namespace, name, host: this.#host };
    try {
      return await PlayedPod.start(place, template);
    } catch (error) {
      // The generated client's own error, of a token for an account that is not there.
      if (error instanceof Error && 'code' in error && error.code === 404) return undefined;
      if (error instanceof ApiError && error.failure.kind === 'NotFound') return undefined;
      throw error;
    }
  }

  #end(pod: PlayedPod): void {
    const gone = pod.stop();
    this.#going.add(gone);
    void gone.then(() => this.#going.delete(gone));
  }

  async #playJobs(): Promise<void> {
    const found = (await this.#list(JOBS)).map((item) => jobSchema.parse(item));
    for (const job of found.filter((each) => isOurs(each.spec.template))) {
      const { uid } = job.metadata;
      if (this.#jobs.has(uid)) continue;
      const stop = new AbortController();
      this.#jobs.set(uid, { stop, done: this.#runJob(job, stop.signal) });
    }
    const uids = new Set(found.map(({ metadata }) => metadata.uid));
    for (const [uid, { stop, done }] of this.#jobs) {
      if (uids.has(uid)) continue;
      stop.abort();
      await done;
      this.#jobs.delete(uid);
    }
  }

  async #runJob({ metadata, spec }: Job, signal: AbortSignal): Promise<void> {
    const { namespace, name } = metadata;
    const ref: ObjectRef = { ...JOBS, namespace, name };
    const startTime = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    for (let failures = 0; !signal.aborted;) {
      const code = await this.#runJobPod({ namespace, name, spec, signal });
      if (code === undefined) {
        await delay(PERIOD_MS);
        continue;
      }
      if (code === 0) {
        const done = { startTime, completionTime: startTime, succeeded: 1, failed: failures };
        return this.#report(ref, jobStatus(done, ['SuccessCriteriaMet', 'Complete']));
      }
      failures += 1;
      const isFinal = spec.podFailurePolicy?.rules.some(
        ({ action, onExitCodes }) =>
          action === 'FailJob' && code !== null && onExitCodes.values.includes(code),
      );
      if (isFinal === true || failures > spec.backoffLimit) {
        const status = { startTime, failed: failures };
        return this.#report(ref, jobStatus(status, ['FailureTarget', 'Failed']));
      }
    }
  }

  async #runJobPod(run: {
    readonly namespace: string;
    readonly name: string;
    readonly spec: Job['spec'];
    readonly signal: AbortSignal;
  }): Promise<number | null | undefined> {
    const pod = await this.#startPod(run.namespace, run.name, run.spec.template);
    if (pod === undefined) return undefined;
    const end = (): void => {
      void pod.stop();
    };
    run.signal.addEventListener('abort', end, { once: true });
    const seconds = run.spec.activeDeadlineSeconds;
    const deadline = seconds === undefined ? undefined : setTimeout(end, seconds * 1_000);
    const code = await pod.exited;
    clearTimeout(deadline);
    run.signal.removeEventListener('abort', end);
    this.ended.push({ name: run.name, code, output: pod.output(), env: pod.env });
    await pod.stop();
    // Of a Job that is gone nothing is reported: what has its name now is another one.
    return run.signal.aborted ? undefined : code;
  }

  /** One slice for each Service and ready pod, since each pod has ports of its own. */
  async #playSlices(): Promise<void> {
    const services = (await this.#list(SERVICES))
      .map((item) => serviceSchema.safeParse(item))
      .flatMap(({ data }) => (data === undefined ? [] : [data]));
    const wanted = new Map<string, JsonObject>();
    for (const service of services) {
      const { namespace, name } = service.metadata;
      for (const pod of this.#readyPodsOf(service)) {
        const slice = `${name}-${pod.name}`.slice(-63).replace(/^[^a-z0-9]+/, '');
        wanted.set(`${namespace}/${slice}`, this.#sliceOf(service, pod, slice));
      }
    }
    for (const [key, body] of wanted) {
      if (this.#slices.has(key)) continue;
      const [namespace = ''] = key.split('/');
      await this.#client.create({ ...SLICES, namespace }, body);
      this.#slices.add(key);
    }
    for (const key of [...this.#slices].filter((each) => !wanted.has(each))) {
      const [namespace = '', name = ''] = key.split('/');
      await this.#client.delete({ ...SLICES, namespace, name }).catch(ignoreNotFound);
      this.#slices.delete(key);
    }
  }

  #readyPodsOf({ metadata, spec: { selector } }: Service): readonly PlayedPod[] {
    if (selector === undefined) return [];
    return [...this.#rollouts.values()]
      .filter(({ deployment }) => deployment.metadata.namespace === metadata.namespace)
      .flatMap(({ pods }) => pods)
      .filter(
        ({
          isReady,
          template: {
            metadata: { labels },
          },
        }) => {
          return isReady && Object.entries(selector).every(([key, value]) => labels[key] === value);
        },
      );
  }

  #sliceOf(service: Service, pod: PlayedPod, name: string): JsonObject {
    const [container] = pod.template.spec.containers;
    const portOf = (target: number | string): number => {
      const named = container.ports.find((port) => port.name === target);
      return pod.portFor(named?.containerPort ?? Number(target));
    };
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, labels: { 'kubernetes.io/service-name': service.metadata.name } },
      addressType: 'IPv4',
      ports: service.spec.ports.map(({ name: port, targetPort }) => ({
        name: port ?? '',
        port: portOf(targetPort),
        protocol: 'TCP',
      })),
      endpoints: [{ addresses: [this.#host], conditions: { ready: true } }],
    };
  }

  async #list(resource: ResourceRef): Promise<readonly JsonObject[]> {
    try {
      return (await this.#client.list(resource)).items;
    } catch (error) {
      if (this.#stop.signal.aborted) return [];
      throw error;
    }
  }

  async #report(ref: ObjectRef, status: JsonObject): Promise<void> {
    await this.#client
      .patch({ ...ref, subresource: 'status' }, { type: 'merge', body: { status } })
      .catch(ignoreNotFound);
  }
}

function isOurs({ spec: { containers } }: PodTemplate): boolean {
  return OWN_IMAGE.test(containers[0].image);
}

function deploymentStatus(
  { metadata: { generation }, spec }: Deployment,
  count: { readonly all: number; readonly ready: number; readonly current: number },
): JsonObject {
  const isComplete = count.ready >= spec.replicas && count.all === count.current;
  return {
    observedGeneration: generation,
    replicas: count.all,
    updatedReplicas: count.current,
    readyReplicas: count.ready,
    availableReplicas: count.ready,
    conditions: [
      condition('Available', isComplete ? 'True' : 'False', 'MinimumReplicasAvailable'),
      condition('Progressing', 'True', isComplete ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated'),
    ],
  };
}

function jobStatus(status: JsonObject, conditions: readonly string[]): JsonObject {
  return { ...status, conditions: conditions.map((type) => condition(type, 'True', 'Played')) };
}

function condition(type: string, status: string, reason: string): JsonObject {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  return { type, status, reason, message: '', lastTransitionTime: now, lastUpdateTime: now };
}

function ignoreNotFound(error: unknown): void {
  if (!(error instanceof ApiError) || error.failure.kind !== 'NotFound') throw error;
}
