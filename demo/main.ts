/** The demo: brings up the stage, plays the pods' lives, shows what happens, checks it, cleans up. */
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fieldsOf, integerOf, itemsOf, readPod } from '../src/boost-engine';
import { PODS, STARTUP_CPU_BOOSTS, systemClock } from '../src/kube';
import type { JsonObject, KubeClient } from '../src/kube';
import type { KubeletPlayer } from '../test/support/kubelet';
import { BOOSTS, CAST, NAMESPACE } from './cast';
import type { Role } from './cast';
import { codeOf, failureOf, interruption, messageOf, reportSteps, start } from './process';
import { Reasons } from './reasons';
import { Stage, boostTable, findKubectl, watchPods } from './stage';
import { createTerminal } from './terminal';
import type { Cell, Terminal } from './terminal';
import { Timeline, cpuText } from './timeline';

/** The play takes 15 s; what is not over by then is not going to be. */
const ENDS_WITHIN_MS = 45_000;

interface Show {
  readonly terminal: Terminal;
  readonly timeline: Timeline;
  readonly client: KubeClient;
  readonly kubelet: KubeletPlayer;
  readonly kubeconfigPath: string;
  readonly kubectl: string | undefined;
  readonly signal: AbortSignal;
}

async function main(): Promise<number> {
  const terminal = createTerminal(process.stdout, process.env);
  const keeps = process.argv.includes('--keep');
  const interrupted = interruption();
  const stage = new Stage({
    bundlePath: process.env.STARTUP_CPU_BOOST_BUNDLE ?? 'dist/startup-cpu-boost.cjs',
    logFolder: join(dirname(__filename), 'demo-logs'),
    report: reportSteps(terminal),
    signal: interrupted,
  });
  let code = 0;
  try {
    await perform(terminal, stage, keeps, interrupted);
  } catch (error) {
    // With --keep, Ctrl-C is how it ends well.
    code = codeOf(interrupted, keeps);
    if (!interrupted.aborted) await reportFailure(terminal, stage, error);
  }
  terminal.line();
  const problems = await stage.stop();
  for (const problem of problems) terminal.line(`while cleaning up: ${messageOf(problem)}`, 'bad');
  terminal.line('Cleaned up: API server, etcd and both processes have ended.', 'faint');
  return problems.length > 0 ? 1 : code;
}

async function perform(
  terminal: Terminal,
  stage: Stage,
  keeps: boolean,
  interrupted: AbortSignal,
): Promise<void> {
  terminal.line('Startup CPU Boost, on a real Kubernetes API server', 'title');
  const { client, kubelet, kubeconfigPath, admission, controller } = await stage.start();
  const ended = new AbortController();
  const signal = AbortSignal.any([interrupted, ended.signal]);
  const reasons = new Reasons(admission, controller);
  const timeline = new Timeline(terminal, reasons, systemClock());
  const kubectl = await findKubectl(process.env);
  const show: Show = { terminal, timeline, client, kubelet, kubeconfigPath, kubectl, signal };

  terminal.line();
  timeline.head();
  const watching = watchPods(client, signal, async (type, pod) => {
    if (type === 'DELETED') timeline.forget(pod);
    else await timeline.see(pod);
  });
  try {
    await Promise.race([play(show), failureOf(watching)]);
    const mistakes = [...(await checkPods(client)), ...checkBoosts(timeline)];
    await showResult(show, mistakes);
    if (mistakes.length > 0) throw new Error('not every pod went the way it should, see above');
    if (keeps) await Promise.race([keepPlaying(show), failureOf(watching)]);
  } finally {
    ended.abort();
    await watching.catch(() => undefined);
  }
}

/** Every role at once; over when all boosts are, and all that should be are Ready. */
async function play(show: Show): Promise<void> {
  const { timeline, signal } = show;
  await Promise.all(CAST.map((role) => playRole(show, role)));
  const end = Date.now() + ENDS_WITHIN_MS;
  for (;;) {
    const open = CAST.filter(
      ({ name, boosted, readyAt }) =>
        (boosted.length > 0 && !timeline.isBack(name)) ||
        (readyAt !== undefined && !timeline.isReady(name)),
    );
    if (open.length === 0) return;
    if (Date.now() > end) {
      throw new Error(`not over in time: ${open.map(({ name }) => name).join(', ')}`);
    }
    await delay(50, undefined, { signal });
  }
}

async function playRole({ client, kubelet, signal }: Show, role: Role): Promise<void> {
  const begin = Date.now();
  const until = (at: number): Promise<void> =>
    delay(Math.max(0, begin + at - Date.now()), undefined, { signal });
  const pod = { namespace: NAMESPACE, name: role.name };
  await until(role.createdAt);
  await client.create({ ...PODS, namespace: NAMESPACE }, role.pod);
  await kubelet.bind(pod);
  await until(role.runningAt);
  await kubelet.running(pod);
  if (role.readyAt === undefined) return;
  await until(role.readyAt);
  await kubelet.ready(pod);
}

/** Compares the pods, as the API server has them, with their manifests; says what differs. */
async function checkPods(client: KubeClient): Promise<readonly string[]> {
  const mistakes: string[] = [];
  for (const { name, pod } of CAST) {
    const stored = await client.get({ ...PODS, namespace: NAMESPACE, name });
    const { containers } = readPod(stored);
    for (const { name: container, cpu } of readPod(pod).containers) {
      const after = containers.find((each) => each.name === container)?.cpu;
      if (after?.request !== cpu.request || after?.limit !== cpu.limit) {
        mistakes.push(
          `${name}/${container} was created with ${cpuText(cpu)} and has ${cpuText(after ?? {})}`,
        );
      }
    }
    const restarts = restartsOf(stored);
    if (restarts > 0) mistakes.push(`${name} was restarted ${restarts} times`);
  }
  return mistakes;
}

/** Compares who was boosted with who should have been. */
function checkBoosts(timeline: Timeline): readonly string[] {
  return timeline.containers().flatMap(({ pod, container, raisedAt }) => {
    const role = CAST.find(({ name }) => name === pod);
    const wasBoosted = raisedAt !== undefined;
    if (role === undefined || role.boosted.includes(container) === wasBoosted) return [];
    return [`${pod}/${container} ${wasBoosted ? 'was boosted' : 'was not boosted'}`];
  });
}

async function showResult(show: Show, mistakes: readonly string[]): Promise<void> {
  const { terminal, timeline, client, kubeconfigPath, kubectl } = show;
  terminal.line();
  const restarts = new Map<string, number>();
  for (const { name } of CAST) {
    restarts.set(name, restartsOf(await client.get({ ...PODS, namespace: NAMESPACE, name })));
  }
  const rows = timeline.containers().map(({ pod, container, cpu, reason, ...times }) => {
    const { raisedAt, loweredAt } = times;
    const wasRaised = raisedAt !== undefined && loweredAt !== undefined;
    return [
      { text: `${pod}/${container}` },
      { text: cpu[0] ?? '' },
      { text: wasRaised ? (cpu[1] ?? '') : '-', tone: 'raised' },
      { text: cpu.at(-1) ?? '', tone: 'lowered' },
      { text: reason },
      { text: wasRaised ? `${((loweredAt - raisedAt) / 1_000).toFixed(1)}s` : '-' },
      { text: String(restarts.get(pod) ?? 0) },
    ] satisfies readonly Cell[];
  });
  terminal.table(['CONTAINER', 'BEFORE', 'BOOSTED', 'AFTER', 'WHY', 'FOR', 'RESTARTS'], rows);
  for (const mistake of mistakes) terminal.line(mistake, 'bad');
  if (mistakes.length === 0) {
    terminal.line();
    terminal.line('Every container has exactly the CPU it was created with. No restarts.', 'good');
  }

  await untilCounted(show);
  terminal.line();
  terminal.line(`$ kubectl get startupcpuboosts -n ${NAMESPACE}`, 'title');
  terminal.line(await boostTable(kubeconfigPath, kubectl));
}

/** The status of a boost follows its pods by a moment. */
async function untilCounted({ client, signal }: Show): Promise<void> {
  const end = Date.now() + 5_000;
  const names = BOOSTS.map((boost) => readPod(boost).name ?? '');
  for (const name of names) {
    const ref = { ...STARTUP_CPU_BOOSTS, namespace: NAMESPACE, name };
    while (Date.now() < end) {
      const status = fieldsOf(fieldsOf(await client.get(ref)).get('status'));
      if (integerOf(status.get('activeContainerBoosts')) === 0) break;
      await delay(50, undefined, { signal });
    }
  }
}

/** For pods that somebody else creates now: bound at once, running, and Ready after 5 s. */
async function keepPlaying({ terminal, client, kubelet, ...show }: Show): Promise<never> {
  const { kubeconfigPath, kubectl, signal } = show;
  terminal.line();
  for (const line of thingsToTry(kubeconfigPath, kubectl)) terminal.line(line);
  terminal.line();
  const lives: Promise<void>[] = [];
  for (;;) {
    for (const pod of await unscheduledPods(client)) {
      await kubelet.bind(pod);
      lives.push(live(kubelet, pod, signal));
    }
    await delay(300, undefined, { signal });
  }
}

async function live(
  kubelet: KubeletPlayer,
  pod: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    await kubelet.running(pod);
    await delay(5_000, undefined, { signal });
    await kubelet.ready(pod);
  } catch {
    // Deleted meanwhile, or the demo is over.
  }
}

async function unscheduledPods(
  client: KubeClient,
): Promise<readonly { readonly namespace: string; readonly name: string }[]> {
  const { items } = await client.list(PODS, {
    namespace: NAMESPACE,
    fieldSelector: 'spec.nodeName=',
  });
  return items.map((pod) => ({ namespace: NAMESPACE, name: readPod(pod).name ?? '' }));
}

function thingsToTry(kubeconfigPath: string, kubectl: string | undefined): readonly string[] {
  const spec = {
    containers: [
      {
        name: 'app',
        image: 'example/app:1',
        resources: { requests: { cpu: '300m' }, limits: { cpu: '300m' } },
      },
    ],
  };
  return [
    'It goes on running until Ctrl-C; a pod that you create in "demo" is Ready after 5 seconds.',
    'In another terminal:',
    '',
    `  export KUBECONFIG=${kubeconfigPath}`,
    ...(kubectl === undefined ? [] : [`  export PATH=$PATH:${dirname(kubectl)}`]),
    `  kubectl get startupcpuboosts -n ${NAMESPACE} -o yaml`,
    `  kubectl run mine -n ${NAMESPACE} --image example/app:1 \\`,
    `    --labels app.kubernetes.io/part-of=shop --overrides '${JSON.stringify({ spec })}'`,
    `  kubectl get pod mine -n ${NAMESPACE} -o yaml`,
    `  kubectl delete startupcpuboost shop -n ${NAMESPACE}`,
  ];
}

function restartsOf(pod: JsonObject): number {
  const statuses = itemsOf(fieldsOf(fieldsOf(pod).get('status')).get('containerStatuses'));
  return statuses.reduce<number>(
    (sum, status) => sum + (integerOf(fieldsOf(status).get('restartCount')) ?? 0),
    0,
  );
}

async function reportFailure(terminal: Terminal, stage: Stage, error: unknown): Promise<void> {
  terminal.line();
  terminal.line(`The demo failed: ${messageOf(error)}`, 'bad');
  const folder = await stage.saveLogs();
  if (folder === undefined) return;
  terminal.line(`The logs of all programs are in ${relative(process.cwd(), folder)}/`);
}

start(main);
