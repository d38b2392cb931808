/** The demo on a real node: one program started without and with a boost, its CPU from its cgroup. */
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { BOOST_KEY, readPod } from '../../src/boost-engine';
import { ApiError, NAMESPACES, PODS, STARTUP_CPU_BOOSTS, systemClock } from '../../src/kube';
import type { Clock, ResourceRef } from '../../src/kube';
import { NAMESPACE } from '../cast';
import { codeOf, interruption, messageOf, reportSteps, start } from '../process';
import { boostTable } from '../stage';
import { createTerminal } from '../terminal';
import type { Cell, Terminal } from '../terminal';
import { barsOf, legendOf } from './bars';
import { NodeCluster } from './cluster';
import { measureStart, removeDeployment } from './measure';
import type { Moment } from './measure';
import { pictureOf } from './picture';
import { BOOST, ORIGINAL_MILLICORES, probeOf } from './program';
import type { Program } from './program';
import { giveBackOf, highestQuota, quotaText, secondsText } from './start';
import type { GiveBack, QuotaStep, Start } from './start';

const SERVICE_ACCOUNTS: ResourceRef = { group: '', version: 'v1', plural: 'serviceaccounts' };

/** What is promised here: the usual is a tenth of it. */
const IN_TIME_MS = 1_000;
/** Caches that follow within a second, on a machine that may be busy. */
const PATIENCE_MS = 30_000;
const WIDTHS = [8, 24];

/** What scripts/demo.mjs hands over. */
const planSchema = z.strictObject({
  bin: z.string(),
  operatorImage: z.string(),
  images: z.array(z.string()),
  program: z.strictObject({
    image: z.string(),
    title: z.string(),
    readyPath: z.string(),
    memory: z.string(),
  }),
  svg: z.string(),
  keeps: z.boolean(),
});
type Plan = z.infer<typeof planSchema>;

interface Show {
  readonly terminal: Terminal;
  readonly cluster: NodeCluster;
  readonly program: Program;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

async function main(): Promise<number> {
  const plan = planSchema.parse(JSON.parse(process.env.NODE_DEMO_PLAN ?? ''));
  const terminal = createTerminal(process.stdout, process.env);
  const signal = interruption();
  const report = reportSteps(terminal);
  signal.addEventListener('abort', () => {
    terminal.line();
    terminal.line('Interrupted; cleaning up...', 'faint');
  });
  terminal.line('Startup CPU Boost, on a real Kubernetes node', 'title');
  terminal.line(`The program: ${plan.program.title}`);
  warnIfBusy(terminal);
  const cluster = await NodeCluster.create({ bin: plan.bin, report, signal });
  const show: Show = { terminal, cluster, program: plan.program, clock: systemClock(), signal };
  let code: number;
  try {
    code = await perform(show, plan);
  } catch (error) {
    code = codeOf(signal, false);
    if (!signal.aborted) await reportFailure(show, error);
  }
  await cluster.stop();
  terminal.line();
  terminal.line('Cleaned up: no process, mount or network of the demo is left.', 'faint');
  return code;
}

async function perform(show: Show, plan: Plan): Promise<number> {
  const { terminal, cluster, program, clock, signal } = show;
  await cluster.start(plan.images);
  await cluster.install(plan.operatorImage);
  await makeNamespace(show);

  const without = await measured(show, 'without-boost');
  await removeDeployment('without-boost', { client: cluster.client, clock, signal });
  await createBoost(show);
  const withBoost = await measured(show, 'with-boost');

  const starts = [without, withBoost];
  const givenBack = giveBackOf(withBoost, ORIGINAL_MILLICORES);
  showTable(terminal, without, withBoost, givenBack);
  showBars(terminal, starts);
  terminal.line();
  const isGood = showVerdict(terminal, without, withBoost, givenBack);
  terminal.line();
  terminal.line(`$ kubectl get startupcpuboosts -n ${NAMESPACE}`, 'title');
  terminal.line(await boostTable(cluster.kubeconfigPath, join(plan.bin, 'kubectl')));

  await mkdir(dirname(plan.svg), { recursive: true });
  const title = 'The same Deployment, started without and with a boost';
  const picture = pictureOf(starts, ORIGINAL_MILLICORES, { title, subtitle: program.title });
  await writeFile(plan.svg, picture);
  terminal.line();
  terminal.line(`The picture is in ${relative(process.cwd(), plan.svg)}`);
  if (plan.keeps) await keep(show, plan.bin);
  return isGood ? 0 : 1;
}

function warnIfBusy(terminal: Terminal): void {
  const [load = 0] = loadavg();
  if (load < availableParallelism()) return;
  const text = `This machine has other work (load ${load.toFixed(1)}): times will be longer than usual.`;
  terminal.line(text, 'bad');
}

async function makeNamespace({ cluster, signal }: Show): Promise<void> {
  const metadata = { name: NAMESPACE };
  await cluster.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  const account = { ...SERVICE_ACCOUNTS, namespace: NAMESPACE, name: 'default' };
  await patiently(signal, () => cluster.client.get(account));
}

/** Resolves when admission boosts what it selects: a cache hears of a new boost a moment later. */
async function createBoost({ terminal, cluster, program, signal }: Show): Promise<void> {
  const { client } = cluster;
  await patiently(signal, async () => {
    try {
      await client.create({ ...STARTUP_CPU_BOOSTS, namespace: NAMESPACE }, BOOST);
    } catch (error) {
      if (!(error instanceof ApiError) || error.failure.kind !== 'AlreadyExists') throw error;
    }
    const pods = { ...PODS, namespace: NAMESPACE };
    const answer = readPod(await client.create(pods, probeOf(program), { dryRun: true }));
    if (answer.labels?.has(BOOST_KEY) !== true) throw new Error('admission does not boost');
  });
  terminal.line();
  terminal.line('A boost: +300% CPU until Ready, for pods with app=with-boost', 'title');
}

/** Repeats it until it does not throw: what others bring about is there a moment later. */
async function patiently(signal: AbortSignal, attempt: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await delay(100, undefined, { signal });
  }
}

async function measured(show: Show, name: string): Promise<Start> {
  const { terminal, cluster, program, clock, signal } = show;
  terminal.line();
  terminal.line(`Deployment ${name}, ${ORIGINAL_MILLICORES}m CPU`, 'title');
  const tell = (at: number, moment: Moment): void => {
    const { text, tone } = lineOf(moment);
    terminal.row(WIDTHS, [
      { text: secondsText(at).padStart(8), tone: 'faint' },
      { text, tone },
    ]);
  };
  return measureStart(name, program, { client: cluster.client, clock, signal, tell });
}

function lineOf(moment: Moment): Required<Cell> {
  switch (moment.kind) {
    case 'Created':
      return { text: 'created', tone: 'plain' };
    case 'FirstQuota': {
      const isRaised = moment.to !== ORIGINAL_MILLICORES;
      const text = `the container runs, with a CPU quota of ${quotaText(moment.to)}`;
      return { text, tone: isRaised ? 'raised' : 'plain' };
    }
    case 'Waiting':
      return { text: `still starting, at ${quotaText(moment.quota)}`, tone: 'faint' };
    case 'Quota':
      return {
        text: `CPU quota ${quotaText(moment.from)} -> ${quotaText(moment.to)}, in place`,
        tone: moment.to === ORIGINAL_MILLICORES ? 'lowered' : 'raised',
      };
    case 'Ready':
      return { text: 'Ready', tone: 'good' };
  }
}

function showTable(
  terminal: Terminal,
  without: Start,
  withBoost: Start,
  givenBack: GiveBack,
): void {
  const row = (start: Start, back: string): readonly Cell[] => [
    { text: start.name },
    { text: secondsText(start.readyAt), tone: 'good' },
    { text: quotaOf(start.quota[0]), tone: 'raised' },
    { text: quotaOf(start.quota.at(-1)), tone: 'lowered' },
    { text: back },
    { text: String(start.restarts) },
  ];
  terminal.line();
  terminal.table(
    ['DEPLOYMENT', 'TIME TO READY', 'QUOTA AT START', 'QUOTA AFTER', 'GIVEN BACK', 'RESTARTS'],
    [row(without, '-'), row(withBoost, givenBackText(givenBack))],
  );
}

function quotaOf(step: QuotaStep | undefined): string {
  return step === undefined ? '-' : quotaText(step.millicores);
}

function showBars(terminal: Terminal, starts: readonly Start[]): void {
  const scale = {
    until: Math.max(...starts.map(({ endedAt }) => endedAt)),
    highest: highestQuota(starts, ORIGINAL_MILLICORES),
  };
  terminal.line();
  terminal.line(`CPU quota over time, from the container's cgroup (${legendOf(scale)})`, 'title');
  for (const start of starts) {
    terminal.line();
    terminal.line(start.name);
    for (const cells of barsOf(start, scale)) terminal.row([], cells);
  }
}

function showVerdict(
  terminal: Terminal,
  without: Start,
  withBoost: Start,
  givenBack: GiveBack,
): boolean {
  const times = `${secondsText(withBoost.readyAt)} instead of ${secondsText(without.readyAt)}`;
  const factor = without.readyAt / withBoost.readyAt;
  const isFaster = factor > 1;
  terminal.line(
    isFaster
      ? `With the boost it was Ready ${factor.toFixed(1)} times as fast: ${times}.`
      : `With the boost it was not Ready any faster: ${times}.`,
    isFaster ? 'good' : 'bad',
  );
  switch (givenBack.kind) {
    case 'GivenBack': {
      const isInTime = givenBack.afterReadyMs <= IN_TIME_MS;
      const text = `The CPU was given back in place, ${givenBackText(givenBack)}`;
      const inTime = isInTime ? 'within a second' : 'later than the second that it should take';
      terminal.line(`${text}: ${inTime}.`, isInTime ? 'good' : 'bad');
      break;
    }
    case 'NotRaised':
      terminal.line('The boost did not raise the CPU quota.', 'bad');
      break;
    case 'NotGivenBack':
      terminal.line(
        `The CPU was NOT given back: the quota is ${quotaText(givenBack.millicores)}.`,
        'bad',
      );
  }
  return givenBack.kind === 'GivenBack' && withBoost.restarts === 0;
}

function givenBackText(givenBack: GiveBack): string {
  switch (givenBack.kind) {
    case 'GivenBack': {
      const { afterReadyMs } = givenBack;
      const time = (Math.abs(afterReadyMs) / 1_000).toFixed(2);
      return `${time} s ${afterReadyMs < 0 ? 'before' : 'after'} Ready`;
    }
    case 'NotRaised':
      return 'never raised';
    case 'NotGivenBack':
      return 'no';
  }
}

async function keep({ terminal, cluster, signal }: Show, bin: string): Promise<void> {
  const lines = [
    'It goes on running until Ctrl-C. In another terminal:',
    '',
    `  export KUBECONFIG=${cluster.kubeconfigPath}`,
    `  export PATH=$PATH:${bin}`,
    '  kubectl get pods -A',
    `  kubectl get startupcpuboosts -n ${NAMESPACE} -o yaml`,
    '  helm list -A',
  ];
  terminal.line();
  for (const line of lines) terminal.line(line);
  // Ctrl-C is how it ends.
  await delay(2 ** 31 - 1, undefined, { signal }).catch(() => undefined);
}

async function reportFailure({ terminal, cluster }: Show, error: unknown): Promise<void> {
  terminal.line();
  terminal.line(`The demo failed: ${messageOf(error)}`, 'bad');
  const folder = join(dirname(__filename), 'demo-logs');
  await cluster.saveLogs(folder);
  terminal.line(`The logs of all programs are in ${relative(process.cwd(), folder)}/`);
}

start(main);
