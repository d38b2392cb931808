/** The metrics of one process, in a registry of its own. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/**
 * Names that google/kube-startup-cpu-boost has are the same here; ours start with
 * `startup_cpu_boost_`. Label values are codes from closed sets, but for the names of boosts.
 */
export interface Metrics {
  /** Media type of `text`. */
  readonly contentType: string;
  /** All metrics in Prometheus' text format. */
  text(): Promise<string>;
  /** Runs `measure` before each `text`, for gauges that are cheaper to read than to keep. */
  beforeText(measure: () => void): void;
  readonly boostConfigurations: Gauge<'namespace'>;
  readonly boostContainersTotal: Counter<'namespace' | 'boost'>;
  readonly boostContainersActive: Gauge<'namespace' | 'boost'>;
  readonly admissionRequests: Counter<'path' | 'result'>;
  readonly admissionSeconds: Histogram<'path'>;
  readonly reverts: Counter<'reason'>;
  readonly revertLatenessSeconds: Histogram;
  readonly revertFailures: Counter<'kind'>;
  readonly catchUps: Counter<'result' | 'reason'>;
  readonly raiseFailures: Counter<'kind'>;
  readonly stuckPods: Gauge<'reason'>;
  readonly sweepFindings: Counter;
  readonly leader: Gauge;
  readonly queueDepth: Gauge;
  readonly watchAgeSeconds: Gauge<'resource'>;
  readonly relists: Gauge<'resource'>;
  readonly certificateExpiry: Gauge<'certificate'>;
}

/** From a millisecond, about what a decision takes, to the webhook's timeout of 2 s and beyond. */
const LATENCY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** From the promise ("within milliseconds") to the safety-net sweep and long outages. */
const LATENESS_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300];

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const own = (name: string) => `startup_cpu_boost_${name}`;
  const measures: (() => void)[] = [];
  return {
    contentType: registry.contentType,
    text: () => {
      for (const measure of measures) measure();
      return registry.metrics();
    },
    beforeText: (measure) => {
      measures.push(measure);
    },
    boostConfigurations: new Gauge({
      name: 'boost_configurations',
      help: 'StartupCPUBoosts known to this process',
      labelNames: ['namespace'],
      registers,
    }),
    boostContainersTotal: new Counter({
      name: 'boost_containers_total',
      help: 'Containers that were boosted',
      labelNames: ['namespace', 'boost'],
      registers,
    }),
    boostContainersActive: new Gauge({
      name: 'boost_containers_active',
      help: 'Containers that are boosted now',
      labelNames: ['namespace', 'boost'],
      registers,
    }),
    admissionRequests: new Counter({
      name: own('admission_requests_total'),
      help: 'Admission reviews by path and result (Boost, AlreadyBoosted, or the reason for skipping)',
      labelNames: ['path', 'result'],
      registers,
    }),
    admissionSeconds: new Histogram({
      name: own('admission_seconds'),
      help: 'Time from the headers of an admission review to the end of its answer',
      labelNames: ['path'],
      buckets: LATENCY_BUCKETS,
      registers,
    }),
    reverts: new Counter({
      name: own('reverts_total'),
      help: 'Pods whose CPU was given back, by the reason the boost ended',
      labelNames: ['reason'],
      registers,
    }),
    revertLatenessSeconds: new Histogram({
      name: own('revert_lateness_seconds'),
      help: 'Time from the end of a timed boost to the accepted resize',
      buckets: LATENESS_BUCKETS,
      registers,
    }),
    revertFailures: new Counter({
      name: own('revert_failures_total'),
      help: 'Calls of a revert that failed, by kind of failure; they are tried again',
      labelNames: ['kind'],
      registers,
    }),
    catchUps: new Counter({
      name: own('catch_ups_total'),
      help: 'Pods raised in place and not at their creation (result Raised, by why so late), or marked for that and left as they are (GivenUp, by why)',
      labelNames: ['result', 'reason'],
      registers,
    }),
    raiseFailures: new Counter({
      name: own('raise_failures_total'),
      help: 'Calls of a raise that failed, by kind of failure; they are tried again, or the boost is given up',
      labelNames: ['kind'],
      registers,
    }),
    stuckPods: new Gauge({
      name: own('stuck_pods'),
      help: 'Pods whose revert does not get on by itself, by reason',
      labelNames: ['reason'],
      registers,
    }),
    sweepFindings: new Counter({
      name: own('sweep_findings_total'),
      help: 'Pods that only the safety-net sweep found due; more than a few mean lost watch events',
      registers,
    }),
    leader: new Gauge({
      name: own('leader'),
      help: '1 while this controller acts, 0 while it stands by',
      registers,
    }),
    queueDepth: new Gauge({
      name: own('queue_depth'),
      help: 'Keys that are due and wait for a worker',
      registers,
    }),
    watchAgeSeconds: new Gauge({
      name: own('watch_age_seconds'),
      help: 'Time since a watch last heard from the API server',
      labelNames: ['resource'],
      registers,
    }),
    relists: new Gauge({
      name: own('watch_relists'),
      help: 'Complete lists that a watch has made since the process started',
      labelNames: ['resource'],
      registers,
    }),
    certificateExpiry: new Gauge({
      name: own('certificate_expiry_seconds'),
      help: 'Unix time at which a certificate of the webhooks ends: serving, or ca that signs it',
      labelNames: ['certificate'],
      registers,
    }),
  };
}
