/**
 * Plays the kubelet for one pod of ours: its container is a real process of the bundle, with the
 * arguments and the environment of the rendered template and a token of its ServiceAccount. There are
 * no pod networks, so each process gets ports of its own on an address of this machine.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { SECRETS } from '../../src/kube';
import type { ControlPlane } from './controlPlane';
import { objectAt } from './objectAt';
import { freePort } from './processes';
import { kubeconfigOf } from './serviceAccount';

const probeSchema = z.looseObject({
  httpGet: z.looseObject({ path: z.string(), port: z.union([z.string(), z.int()]) }),
});

const containerSchema = z.looseObject({
  image: z.string(),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).default([]),
  env: z
    .array(
      z.looseObject({
        name: z.string(),
        value: z.string().optional(),
        valueFrom: z.looseObject({ fieldRef: z.looseObject({ fieldPath: z.string() }) }).optional(),
      }),
    )
    .default([]),
  envFrom: z.array(z.never()).default([]),
  ports: z.array(z.looseObject({ name: z.string(), containerPort: z.int() })).default([]),
  readinessProbe: probeSchema.optional(),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })).default([]),
});

export const podTemplateSchema = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.looseObject({
    serviceAccountName: z.string().default('default'),
    automountServiceAccountToken: z.boolean().default(true),
    terminationGracePeriodSeconds: z.int().default(30),
    containers: z.tuple([containerSchema]),
    volumes: z
      .array(
        z.looseObject({
          name: z.string(),
          secret: z.looseObject({ secretName: z.string() }).optional(),
        }),
      )
      .default([]),
  }),
});

export type PodTemplate = z.output<typeof podTemplateSchema>;

export interface PodPlace {
  readonly controlPlane: ControlPlane;
  readonly namespace: string;
  readonly name: string;
  /** An address of this machine, where other processes of it reach the pod. */
  readonly host: string;
}

export class PlayedPod {
  readonly name: string;
  readonly template: PodTemplate;
  /** As the template has it, without what only this machine needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #place: PodPlace;
  /** By the number that the template gives the port. */
  readonly #ports: ReadonlyMap<number, number>;
  readonly #folder: string;
  readonly #written: string[] = [];
  #ready = false;

  private constructor(
    place: PodPlace,
    template: PodTemplate,
    env: Readonly<Record<string, string>>,
    child: ChildProcess,
    ports: ReadonlyMap<number, number>,
    folder: string,
  ) {
    this.name = place.name;
    this.template = template;
    this.env = env;
    this.#place = place;
    this.#child = child;
    this.#ports = ports;
    this.#folder = folder;
    this.exited = new Promise((resolve) => {
      child.once('error', () => {
        resolve(null);
      });
      child.once('close', (code) => {
        this.#ready = false;
        resolve(code);
      });
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#written.push(text));
    }
  }

  static async start(place: PodPlace, template: PodTemplate): Promise<PlayedPod> {
    const { spec } = template;
    const [container] = spec.containers;
    if (container.command !== undefined) throw new Error('the image has an entry point of its own');
    const env = environmentOf(container, place);
    const folder = await mkdtemp(join(tmpdir(), 'startup-cpu-boost-pod-'));
    const ports = new Map<number, number>();
    for (const { containerPort } of container.ports) {
      ports.set(containerPort, await freePort(place.host));
    }
    const bundle = join(process.cwd(), 'dist', 'startup-cpu-boost.cjs');
    const program = [process.execPath, bundle, ...container.args];
    // setpriv becomes the process; the kernel ends it when this one is gone, however that went.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...program], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        ...env,
        ...addressesOf(env, place.host, ports),
        ...(await writeMounts(place, template, env, folder)),
        ...(await writeToken(place, template, folder)),
      },
    });
    return new PlayedPod(place, template, env, child, ports, folder);
  }

  get isReady(): boolean {
    return this.#ready;
  }

  /** Everything that it has written. */
  output(): string {
    return this.#written.join('');
  }

  /** Where the port of this number in the template really is. */
  portFor(containerPort: number): number {
    return this.#ports.get(containerPort) ?? containerPort;
  }

  /** Asks the readiness probe; a container without one is ready while it runs. */
  async probe(): Promise<void> {
    const [container] = this.template.spec.containers;
    const { readinessProbe } = container;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    if (readinessProbe === undefined) {
      this.#ready = true;
      return;
    }
    const { path, port } = readinessProbe.httpGet;
    const number =
      typeof port === 'number'
        ? port
        : (container.ports.find(({ name }) => name === port)?.containerPort ?? 0);
    const url = `http://${this.#place.host}:${this.portFor(number)}${path}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(
      () => undefined,
    );
    await response?.body?.cancel();
    this.#ready = response?.ok === true;
  }

  /** SIGTERM, and SIGKILL when its grace is over. */
  async stop(): Promise<void> {
    this.#ready = false;
    this.#child.kill('SIGTERM');
    const over = new AbortController();
    const grace = this.template.spec.terminationGracePeriodSeconds * 1_000;
    void delay(grace, undefined, { signal: over.signal }).then(
      () => this.#child.kill('SIGKILL'),
      () => undefined,
    );
    await this.exited;
    over.abort();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function environmentOf(
  { env }: z.output<typeof containerSchema>,
  { namespace, name, host }: PodPlace,
): Record<string, string> {
  const fields: Readonly<Record<string, string>> = {
    'metadata.namespace': namespace,
    'metadata.name': name,
    'status.podIP': host,
    'spec.nodeName': 'player',
  };
  return Object.fromEntries(
    env.map(({ name: variable, value, valueFrom }) => {
      const text = valueFrom === undefined ? (value ?? '') : fields[valueFrom.fieldRef.fieldPath];
      if (text === undefined) throw new Error(`${variable}: no field ${JSON.stringify(valueFrom)}`);
      return [variable, text];
    }),
  );
}

/** The variables with ports, for this machine where all pods share one network. */
function addressesOf(
  env: Readonly<Record<string, string>>,
  host: string,
  ports: ReadonlyMap<number, number>,
): Record<string, string> {
  const moved = (variable: string): string | undefined => {
    const port = ports.get(Number((env[variable] ?? '').replace(/^:/, '')));
    return port === undefined ? undefined : String(port);
  };
  const webhook = moved('WEBHOOK_PORT');
  const addresses = ['HEALTH_PROBE_BIND_ADDR', 'METRICS_PROBE_BIND_ADDR'].flatMap((variable) => {
    const port = moved(variable);
    return port === undefined ? [] : [[variable, `${host}:${port}`]];
  });
  return {
    ...(webhook === undefined ? {} : { WEBHOOK_PORT: webhook, WEBHOOK_BIND_ADDR: host }),
    ...Object.fromEntries<string>(
      addresses.map(([variable = '', value = '']) => [variable, value]),
    ),
  };
}

/** Mounted Secrets, as folders; the variables that name such a mount. */
async function writeMounts(
  { controlPlane, namespace }: PodPlace,
  { spec }: PodTemplate,
  env: Readonly<Record<string, string>>,
  folder: string,
): Promise<Record<string, string>> {
  const changed: Record<string, string> = {};
  const [container] = spec.containers;
  for (const { name, mountPath } of container.volumeMounts) {
    const secretName = spec.volumes.find((volume) => volume.name === name)?.secret?.secretName;
    if (secretName === undefined) continue;
    const secret = await controlPlane.client.get({ ...SECRETS, namespace, name: secretName });
    for (const [file, value] of Object.entries(objectAt(secret, 'data'))) {
      await writeFile(join(folder, file), Buffer.from(String(value), 'base64'));
    }
    for (const [variable, value] of Object.entries(env)) {
      if (value === mountPath) changed[variable] = folder;
    }
  }
  return changed;
}

/** A copy of its own: another pod of the account may get its token just now. */
async function writeToken(
  { controlPlane, namespace }: PodPlace,
  { spec }: PodTemplate,
  folder: string,
): Promise<Record<string, string>> {
  if (!spec.automountServiceAccountToken) return {};
  const path = join(folder, 'kubeconfig');
  const account = { namespace, name: spec.serviceAccountName };
  await copyFile(await kubeconfigOf(controlPlane, account), path);
  return { KUBECONFIG: path };
}
