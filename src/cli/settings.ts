/** Settings of the processes, from environment variables, checked before anything starts. */
import type { BoostDefaults } from '../admission';
import { LOG_LEVELS } from '../observability';
import type { LeaseSettings } from '../kube';
import type { ListenAddress, LogLevel } from '../observability';
import { z } from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface CommonSettings {
  /** Path of a kubeconfig; undefined means the service account of the pod. */
  readonly kubeconfig: string | undefined;
  readonly logLevel: LogLevel;
  /** Undefined where switched off with `0`. */
  readonly healthAddress: ListenAddress | undefined;
  readonly metricsAddress: ListenAddress | undefined;
}

export interface AdmissionSettings extends CommonSettings {
  /** Of this process; undefined where it is that of the kubeconfig. */
  readonly namespace: string | undefined;
  readonly webhookAddress: ListenAddress;
  readonly certificates:
    | { readonly mode: 'self-managed'; readonly servingSecret: string }
    /** Files of this folder, which somebody else replaces in time. */
    | { readonly mode: 'provided'; readonly directory: string };
  readonly drainMs: number;
  /** How long no controller may have held the Lease; undefined where nobody looks at it. */
  readonly noControllerGraceMs: number | undefined;
  readonly boostDefaults: BoostDefaults;
}

export interface ControllerSettings extends CommonSettings {
  /** Of this process; undefined where it is that of the kubeconfig. */
  readonly namespace: string | undefined;
  readonly election:
    { readonly kind: 'Off' } | { readonly kind: 'Lease'; readonly lease: LeaseSettings };
  readonly certificates:
    | ({ readonly mode: 'self-managed' } & KeptCertificates)
    /** Somebody else fills the caBundles, too. */
    | { readonly mode: 'provided' };
  readonly sweepIntervalMs: number;
  readonly maximumBoostMs: number;
  readonly boostDeletedGraceMs: number;
  readonly unschedulableGraceMs: number;
  readonly limitRangeDefaults: 'Avoid' | 'Accept';
  readonly confirmTimeoutMs: number;
  readonly unlabelledSweepIntervalMs: number;
  /** Name of our MutatingWebhookConfiguration. */
  readonly webhookConfiguration: string;
  /** Whether pods are raised in place at all. */
  readonly raisesInPlace: boolean;
  /** 0 where switched off. */
  readonly catchUpMs: number;
  readonly catchUpBoostLagMs: number;
  readonly catchUpExcludedNamespaces: readonly string[];
  readonly guaranteed: 'Boost' | 'Leave';
}

export interface RevertAllSettings {
  readonly kubeconfig: string | undefined;
  readonly logLevel: LogLevel;
  readonly webhookConfiguration: string;
  readonly limitRangeDefaults: 'Avoid' | 'Accept';
  readonly confirmTimeoutMs: number;
}

export interface ApplyCrdSettings {
  readonly kubeconfig: string | undefined;
}

export interface CheckSettings {
  readonly kubeconfig: string | undefined;
  /** Of the installation; undefined where it is that of the kubeconfig. */
  readonly namespace: string | undefined;
  readonly webhookConfiguration: string;
}

export interface KeptCertificates {
  readonly authoritySecret: string;
  readonly servingSecret: string;
  /** Of the admission endpoints. */
  readonly service: string;
  /** Of the mutating and of the validating webhook configuration. */
  readonly webhookConfiguration: string;
  /** Beside those of the Service. */
  readonly furtherNames: readonly string[];
  readonly authorityLifetimeMs: number;
  readonly servingLifetimeMs: number;
  readonly publishWaitMs: number;
}

export type ParsedSettings<Settings> =
  | { readonly kind: 'Settings'; readonly settings: Settings; readonly warnings: readonly string[] }
  /** One line for each variable that is wrong: its name, its value and what is allowed. */
  | { readonly kind: 'Invalid'; readonly problems: readonly string[] };

/** Variables of google/kube-startup-cpu-boost that do nothing here, and why. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  SECURE_METRICS: 'metrics are served over plain HTTP',
  HTTP2: 'webhooks are served over HTTP/1.1',
  VALIDATE_FEATURE_ENABLED: 'resizing in place is part of every supported Kubernetes version',
  ZAP_DEVELOPMENT: 'logs are always JSON',
};

/**
 * zap's numbers, which google/kube-startup-cpu-boost takes: below 0 is debug, 0 info, 1 warning,
 * from 2 error.
 */
const logLevel = z
  .string()
  .default('info')
  .transform((text, context): LogLevel => {
    const named = LOG_LEVELS.find((level) => level === text.toLowerCase());
    if (named !== undefined) return named;
    if (/^-?\d{1,3}$/.test(text)) return levelOfZap(Number(text));
    return invalid(
      context,
      `must be one of ${LOG_LEVELS.join(', ')}, or a level of zap (-1, 0, 1, 2)`,
    );
  });

const kubeconfig = z.string().min(1, 'must be a path').optional();

const dnsNames = z
  .string()
  .default('')
  .transform((text, context): readonly string[] => {
    const names = namesIn(text);
    const bad = names.find((name) => !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(name));
    if (bad === undefined) return names;
    return invalid(context, `must be DNS names separated by commas; "${bad}" is none`);
  });

/** A DNS subdomain (RFC 1123), as Kubernetes takes for the names of most objects. */
const objectName = (byDefault: string) =>
  z
    .string()
    .max(253, 'must have at most 253 characters')
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be the name of an object')
    .default(byDefault);

/** A DNS label (RFC 1123), as Kubernetes takes for the names of namespaces. */
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

const namespaces = z
  .string()
  .default('kube-system,kube-node-lease')
  .transform((text, context): readonly string[] => {
    const names = namesIn(text);
    const bad = names.find((name) => !NAMESPACE.test(name));
    if (bad === undefined) return names;
    return invalid(context, `must be names of namespaces separated by commas; "${bad}" is none`);
  });

const commonSchema = z.object({
  KUBECONFIG: kubeconfig,
  ZAP_LOG_LEVEL: logLevel,
  HEALTH_PROBE_BIND_ADDR: address(':8081'),
  METRICS_PROBE_BIND_ADDR: address(':8080'),
  POD_NAMESPACE: z
    .string()
    .regex(
      NAMESPACE,
      'must be the name of a namespace: at most 63 of a-z, 0-9 and -, the first and the last not -',
    )
    .optional(),
  CERT_MODE: z
    .enum(['self-managed', 'provided'], { error: 'must be self-managed or provided' })
    .default('self-managed'),
  SERVING_SECRET: objectName('startup-cpu-boost-serving'),
  BOOST_GUARANTEED: yesOrNo('true'),
});

const admissionSchema = commonSchema.extend({
  WEBHOOK_PORT: wholeNumber({ byDefault: 9443, from: 0, to: 65_535, what: 'a port number' }),
  WEBHOOK_BIND_ADDR: z.string().min(1, 'must be an IP address or a host name').optional(),
  CERT_DIR: z.string().min(1, 'must be a path').default('/tmp/startup-cpu-boost/certificates'),
  // Endpoints of a Service go on getting calls for a few seconds after the pod is asked to stop.
  WEBHOOK_DRAIN_SECONDS: wholeNumber({ byDefault: 10, from: 0, to: 600, what: 'seconds' }),
  // A hundred times the lease: longer than any rollout or API server upgrade, so that what is left
  // is a controller that somebody has taken away.
  NO_CONTROLLER_GRACE_SECONDS: wholeNumber({
    byDefault: 600,
    from: 0,
    to: 86_400,
    what: 'seconds',
  }),
  ALLOW_PREEMPTION: yesOrNo('false'),
  REMOVE_LIMITS: yesOrNo('false'),
});

const seconds = (byDefault: number, to: number) =>
  wholeNumber({ byDefault, from: 1, to, what: 'seconds' });

/** What every revert needs, of the controller and of revert-all. */
const revertSchema = z.object({
  // The name that the manifests give it, which google/kube-startup-cpu-boost does not use.
  WEBHOOK_CONFIGURATION: objectName('startup-cpu-boost'),
  REVERT_ANYWAY: yesOrNo('false'),
  // A kubelet confirms within 1 to 3 s when it is idle.
  KUBELET_CONFIRM_SECONDS: wholeNumber({ byDefault: 30, from: 1, to: 3_600, what: 'seconds' }),
});

const controllerSchema = commonSchema.extend({
  LEADER_ELECTION: yesOrNo('true'),
  // Half of client-go's: a revert that waits for the next leader wastes CPU, and one small object
  // that is written each second costs the API server nothing.
  LEASE_DURATION_SECONDS: seconds(6, 600),
  LEASE_RENEW_DEADLINE_SECONDS: seconds(4, 600),
  LEASE_RETRY_SECONDS: seconds(1, 600),
  // google/kube-startup-cpu-boost reverts at this interval; here it is the safety net only.
  MGR_CHECK_INTERVAL: wholeNumber({ byDefault: 30, from: 1, to: 3_600, what: 'seconds' }),
  MAXIMUM_BOOST_SECONDS: wholeNumber({ byDefault: 3_600, from: 1, to: 604_800, what: 'seconds' }),
  // Long enough for a delete and create of the same manifest, short enough not to matter.
  BOOST_DELETED_GRACE_SECONDS: wholeNumber({ byDefault: 5, from: 0, to: 3_600, what: 'seconds' }),
  // Node autoscalers collect pending pods for a second or more before they buy a node.
  UNSCHEDULABLE_GRACE_MS: wholeNumber({
    byDefault: 500,
    from: 0,
    to: 3_600_000,
    what: 'milliseconds',
  }),
  ...revertSchema.shape,
  // What it finds has lost its label while no controller ran: rare, and one list of all pods is dear.
  UNLABELLED_CHECK_SECONDS: wholeNumber({ byDefault: 600, from: 10, to: 86_400, what: 'seconds' }),
  CA_SECRET: objectName('startup-cpu-boost-ca'),
  WEBHOOK_SERVICE: objectName('startup-cpu-boost-webhook'),
  WEBHOOK_DNS_NAMES: dnsNames,
  // Rotated so often that it is nothing unusual when it counts, and so seldom that an outage of
  // weeks between two thirds of a life and its end does no harm.
  CA_LIFETIME_SECONDS: seconds(365 * 86_400, 315_360_000),
  SERVING_LIFETIME_SECONDS: seconds(90 * 86_400, 315_360_000),
  // API servers watch the configurations, and do not say what they have seen.
  CA_PUBLISH_WAIT_SECONDS: wholeNumber({ byDefault: 60, from: 0, to: 86_400, what: 'seconds' }),
  RAISE_IN_PLACE: yesOrNo('true'),
  CATCH_UP: yesOrNo('true'),
  // What takes longer to start than this is seldom bound by CPU any more.
  CATCH_UP_SECONDS: seconds(300, 86_400),
  // Helm installs kinds that it does not know last, so a chart's boost comes after its pods.
  CATCH_UP_BOOST_LAG_SECONDS: wholeNumber({ byDefault: 30, from: 0, to: 86_400, what: 'seconds' }),
  CATCH_UP_EXCLUDED_NAMESPACES: namespaces,
});

const revertAllSchema = commonSchema
  .pick({ KUBECONFIG: true, ZAP_LOG_LEVEL: true })
  .extend(revertSchema.shape);

const applyCrdSchema = commonSchema.pick({ KUBECONFIG: true });

const checkSchema = controllerSchema.pick({
  KUBECONFIG: true,
  POD_NAMESPACE: true,
  WEBHOOK_CONFIGURATION: true,
});

export function parseAdmissionSettings(env: Environment): ParsedSettings<AdmissionSettings> {
  return parse(admissionSchema, env, (values) => ({
    ...commonSettings(values),
    namespace: values.POD_NAMESPACE,
    webhookAddress: { host: values.WEBHOOK_BIND_ADDR, port: values.WEBHOOK_PORT },
    certificates:
      values.CERT_MODE === 'provided'
        ? { mode: 'provided', directory: values.CERT_DIR }
        : { mode: 'self-managed', servingSecret: values.SERVING_SECRET },
    drainMs: values.WEBHOOK_DRAIN_SECONDS * 1_000,
    noControllerGraceMs:
      values.NO_CONTROLLER_GRACE_SECONDS === 0
        ? undefined
        : values.NO_CONTROLLER_GRACE_SECONDS * 1_000,
    boostDefaults: {
      preemption: values.ALLOW_PREEMPTION ? 'Accept' : 'Avoid',
      cpuLimits: values.REMOVE_LIMITS ? 'Remove' : 'Raise',
      guaranteed: values.BOOST_GUARANTEED ? 'Boost' : 'Leave',
    },
  }));
}

/** Of the election the rules of client-go: leaderelection.go, NewLeaderElector. */
const consistentSchema = controllerSchema
  .refine((values) => values.LEASE_DURATION_SECONDS > values.LEASE_RENEW_DEADLINE_SECONDS, {
    path: ['LEASE_DURATION_SECONDS'],
    error: 'must be more than LEASE_RENEW_DEADLINE_SECONDS',
  })
  .refine((values) => values.LEASE_RENEW_DEADLINE_SECONDS > 1.2 * values.LEASE_RETRY_SECONDS, {
    path: ['LEASE_RENEW_DEADLINE_SECONDS'],
    error: 'must be more than 1.2 times LEASE_RETRY_SECONDS',
  })
  .refine((values) => values.SERVING_LIFETIME_SECONDS <= values.CA_LIFETIME_SECONDS, {
    path: ['SERVING_LIFETIME_SECONDS'],
    error: 'must not be more than CA_LIFETIME_SECONDS',
  })
  // The next CA is made when a third of the life is left, and signs after the wait.
  .refine((values) => values.CA_LIFETIME_SECONDS > 3 * values.CA_PUBLISH_WAIT_SECONDS, {
    path: ['CA_LIFETIME_SECONDS'],
    error: 'must be more than 3 times CA_PUBLISH_WAIT_SECONDS',
  });

export function parseControllerSettings(env: Environment): ParsedSettings<ControllerSettings> {
  return parse(consistentSchema, env, (values) => ({
    namespace: values.POD_NAMESPACE,
    election: values.LEADER_ELECTION
      ? {
          kind: 'Lease',
          lease: {
            leaseDurationMs: values.LEASE_DURATION_SECONDS * 1_000,
            renewDeadlineMs: values.LEASE_RENEW_DEADLINE_SECONDS * 1_000,
            retryPeriodMs: values.LEASE_RETRY_SECONDS * 1_000,
          },
        }
      : { kind: 'Off' },
    ...commonSettings(values),
    certificates:
      values.CERT_MODE === 'provided'
        ? { mode: 'provided' }
        : { mode: 'self-managed', ...keptCertificates(values) },
    sweepIntervalMs: values.MGR_CHECK_INTERVAL * 1_000,
    maximumBoostMs: values.MAXIMUM_BOOST_SECONDS * 1_000,
    boostDeletedGraceMs: values.BOOST_DELETED_GRACE_SECONDS * 1_000,
    unschedulableGraceMs: values.UNSCHEDULABLE_GRACE_MS,
    ...revertSettings(values),
    unlabelledSweepIntervalMs: values.UNLABELLED_CHECK_SECONDS * 1_000,
    raisesInPlace: values.RAISE_IN_PLACE,
    catchUpMs: values.CATCH_UP ? values.CATCH_UP_SECONDS * 1_000 : 0,
    catchUpBoostLagMs: values.CATCH_UP_BOOST_LAG_SECONDS * 1_000,
    catchUpExcludedNamespaces: values.CATCH_UP_EXCLUDED_NAMESPACES,
    guaranteed: values.BOOST_GUARANTEED ? 'Boost' : 'Leave',
  }));
}

export function parseRevertAllSettings(env: Environment): ParsedSettings<RevertAllSettings> {
  return parse(revertAllSchema, env, (values) => ({
    kubeconfig: values.KUBECONFIG,
    logLevel: values.ZAP_LOG_LEVEL,
    ...revertSettings(values),
  }));
}

export function parseApplyCrdSettings(env: Environment): ParsedSettings<ApplyCrdSettings> {
  return parse(applyCrdSchema, env, (values) => ({ kubeconfig: values.KUBECONFIG }));
}

export function parseCheckSettings(env: Environment): ParsedSettings<CheckSettings> {
  return parse(checkSchema, env, (values) => ({
    kubeconfig: values.KUBECONFIG,
    namespace: values.POD_NAMESPACE,
    webhookConfiguration: values.WEBHOOK_CONFIGURATION,
  }));
}

function revertSettings(values: z.output<typeof revertSchema>) {
  return {
    webhookConfiguration: values.WEBHOOK_CONFIGURATION,
    limitRangeDefaults: values.REVERT_ANYWAY ? 'Accept' : 'Avoid',
    confirmTimeoutMs: values.KUBELET_CONFIRM_SECONDS * 1_000,
  } as const;
}

function keptCertificates(values: z.output<typeof controllerSchema>): KeptCertificates {
  return {
    authoritySecret: values.CA_SECRET,
    servingSecret: values.SERVING_SECRET,
    service: values.WEBHOOK_SERVICE,
    webhookConfiguration: values.WEBHOOK_CONFIGURATION,
    furtherNames: values.WEBHOOK_DNS_NAMES,
    authorityLifetimeMs: values.CA_LIFETIME_SECONDS * 1_000,
    servingLifetimeMs: values.SERVING_LIFETIME_SECONDS * 1_000,
    publishWaitMs: values.CA_PUBLISH_WAIT_SECONDS * 1_000,
  };
}

function commonSettings(values: z.output<typeof commonSchema>): CommonSettings {
  return {
    kubeconfig: values.KUBECONFIG,
    logLevel: values.ZAP_LOG_LEVEL,
    healthAddress: values.HEALTH_PROBE_BIND_ADDR,
    metricsAddress: values.METRICS_PROBE_BIND_ADDR,
  };
}

function parse<Schema extends z.ZodType, Settings>(
  schema: Schema,
  env: Environment,
  settingsOf: (values: z.output<Schema>) => Settings,
): ParsedSettings<Settings> {
  // An empty variable is how a chart writes one that is not set.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const result = schema.safeParse(given);
  if (!result.success) {
    return {
      kind: 'Invalid',
      problems: result.error.issues.map(({ path, message }) => {
        const name = String(path[0]);
        return `${name}=${JSON.stringify(given[name])}: ${message}`;
      }),
    };
  }
  const warnings = Object.entries(WITHOUT_EFFECT).flatMap(([name, why]) =>
    given[name] === undefined ? [] : [`${name} has no effect: ${why}`],
  );
  return { kind: 'Settings', settings: settingsOf(result.data), warnings };
}

function namesIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

function levelOfZap(level: number): LogLevel {
  if (level < 0) return 'debug';
  if (level === 0) return 'info';
  return level === 1 ? 'warn' : 'error';
}

function wholeNumber(bounds: {
  readonly byDefault: number;
  readonly from: number;
  readonly to: number;
  readonly what: string;
}) {
  return z
    .string()
    .default(String(bounds.byDefault))
    .transform((text, context): number => {
      const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= bounds.from && value <= bounds.to) return value;
      return invalid(context, `must be ${bounds.what}, from ${bounds.from} to ${bounds.to}`);
    });
}

/** As Go's strconv.ParseBool, which google/kube-startup-cpu-boost uses. */
function yesOrNo(byDefault: 'true' | 'false') {
  return z
    .string()
    .default(byDefault)
    .transform((text, context): boolean => {
      if (['1', 't', 'true'].includes(text.toLowerCase())) return true;
      if (['0', 'f', 'false'].includes(text.toLowerCase())) return false;
      return invalid(context, 'must be true or false');
    });
}

/** `:8081`, `127.0.0.1:8081`, `[::1]:8081`, or `0` to switch the listener off. */
function address(byDefault: string) {
  return z
    .string()
    .default(byDefault)
    .transform((text, context): ListenAddress | undefined => {
      if (text === '0') return undefined;
      const match = /^(?:\[([0-9a-f:.]+)\]|([^:\s]*)):(\d{1,5})$/i.exec(text);
      const port = Number(match?.[3] ?? Number.NaN);
      if (match === null || port > 65_535) {
        return invalid(context, 'must be [HOST]:PORT such as :8081, or 0 to switch it off');
      }
      const host = match[1] ?? match[2];
      return { host: host === '' ? undefined : host, port };
    });
}

function invalid(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

/** The variables that each process reads, for the documentation to be compared with. */
export const VARIABLES = {
  admission: Object.keys(admissionSchema.shape),
  controller: Object.keys(controllerSchema.shape),
  'revert-all': Object.keys(revertAllSchema.shape),
  'apply-crd': Object.keys(applyCrdSchema.shape),
  check: Object.keys(checkSchema.shape),
} as const;
