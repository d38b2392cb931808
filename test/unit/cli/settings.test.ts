/** Settings: defaults, upstream's names, and a clear word about every wrong value. */
import { describe, expect, it } from '@jest/globals';
import {
  parseAdmissionSettings,
  parseCheckSettings,
  parseControllerSettings,
} from '../../../src/cli/settings';
import type { Environment } from '../../../src/cli/settings';

function controller(env: Environment) {
  const parsed = parseControllerSettings(env);
  if (parsed.kind === 'Invalid') throw new Error(parsed.problems.join('\n'));
  return parsed.settings;
}

function admission(env: Environment) {
  const parsed = parseAdmissionSettings(env);
  if (parsed.kind === 'Invalid') throw new Error(parsed.problems.join('\n'));
  return parsed.settings;
}

function problems(env: Environment): readonly string[] {
  return [parseAdmissionSettings(env), parseControllerSettings(env)].flatMap((parsed) =>
    parsed.kind === 'Invalid' ? parsed.problems : [],
  );
}

describe('settings', () => {
  it('have defaults that work without any variable', () => {
    expect(controller({})).toEqual({
      kubeconfig: undefined,
      namespace: undefined,
      election: {
        kind: 'Lease',
        lease: { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 1_000 },
      },
      logLevel: 'info',
      healthAddress: { host: undefined, port: 8081 },
      metricsAddress: { host: undefined, port: 8080 },
      certificates: {
        mode: 'self-managed',
        authoritySecret: 'startup-cpu-boost-ca',
        servingSecret: 'startup-cpu-boost-serving',
        service: 'startup-cpu-boost-webhook',
        webhookConfiguration: 'startup-cpu-boost',
        furtherNames: [],
        authorityLifetimeMs: 365 * 86_400_000,
        servingLifetimeMs: 90 * 86_400_000,
        publishWaitMs: 60_000,
      },
      sweepIntervalMs: 30_000,
      maximumBoostMs: 3_600_000,
      boostDeletedGraceMs: 5_000,
      unschedulableGraceMs: 500,
      limitRangeDefaults: 'Avoid',
      confirmTimeoutMs: 30_000,
      unlabelledSweepIntervalMs: 600_000,
      webhookConfiguration: 'startup-cpu-boost',
      raisesInPlace: true,
      catchUpMs: 300_000,
      catchUpBoostLagMs: 30_000,
      catchUpExcludedNamespaces: ['kube-system', 'kube-node-lease'],
      guaranteed: 'Boost',
    });
    expect(admission({})).toMatchObject({
      webhookAddress: { host: undefined, port: 9443 },
      certificates: { mode: 'self-managed', servingSecret: 'startup-cpu-boost-serving' },
      drainMs: 10_000,
      boostDefaults: { preemption: 'Avoid', cpuLimits: 'Raise', guaranteed: 'Boost' },
      noControllerGraceMs: 600_000,
    });
  });

  it('look for no controller where that is switched off', () => {
    expect(admission({ NO_CONTROLLER_GRACE_SECONDS: '0' }).noControllerGraceMs).toBeUndefined();
  });

  it('switch catching up and raising off, and let boosts push others out', () => {
    expect(controller({ CATCH_UP: 'false', CATCH_UP_SECONDS: '60' }).catchUpMs).toBe(0);
    expect(controller({ CATCH_UP_SECONDS: '60' }).catchUpMs).toBe(60_000);
    expect(controller({ RAISE_IN_PLACE: 'false' }).raisesInPlace).toBe(false);
    expect(controller({ CATCH_UP_EXCLUDED_NAMESPACES: 'a, b' }).catchUpExcludedNamespaces).toEqual([
      'a',
      'b',
    ]);
    expect(admission({ ALLOW_PREEMPTION: 'true' }).boostDefaults.preemption).toBe('Accept');
    expect(admission({ REMOVE_LIMITS: 'true' }).boostDefaults.cpuLimits).toBe('Remove');
    expect(admission({ BOOST_GUARANTEED: 'false' }).boostDefaults.guaranteed).toBe('Leave');
    expect(controller({ BOOST_GUARANTEED: 'false' }).guaranteed).toBe('Leave');
  });

  it('take an empty variable for one that is not set', () => {
    expect(controller({ MGR_CHECK_INTERVAL: '', ZAP_LOG_LEVEL: '' })).toEqual(controller({}));
  });

  it.each([
    ['debug', 'debug'],
    ['WARN', 'warn'],
    ['-5', 'debug'],
    ['0', 'info'],
    ['1', 'warn'],
    ['2', 'error'],
  ])('read the log level %s as %s', (text, level) => {
    expect(controller({ ZAP_LOG_LEVEL: text }).logLevel).toBe(level);
  });

  it.each([
    [':8081', { host: undefined, port: 8081 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:9000', { host: '::1', port: 9000 }],
    ['0', undefined],
  ])('read the address %s', (text, address) => {
    expect(controller({ HEALTH_PROBE_BIND_ADDR: text }).healthAddress).toEqual(address);
  });

  it('split the DNS names at commas', () => {
    const { certificates } = controller({
      WEBHOOK_DNS_NAMES: 'boost.ns.svc, boost.ns.svc.cluster.local,',
    });
    expect(certificates).toMatchObject({
      furtherNames: ['boost.ns.svc', 'boost.ns.svc.cluster.local'],
    });
  });

  it.each<[Environment, string]>([
    [{ MGR_CHECK_INTERVAL: 'soon' }, 'MGR_CHECK_INTERVAL="soon": must be seconds, from 1 to 3600'],
    [{ MGR_CHECK_INTERVAL: '0' }, 'MGR_CHECK_INTERVAL="0": must be seconds, from 1 to 3600'],
    [{ MGR_CHECK_INTERVAL: '1.5' }, 'MGR_CHECK_INTERVAL="1.5": must be seconds, from 1 to 3600'],
    [{ WEBHOOK_PORT: '65536' }, 'WEBHOOK_PORT="65536": must be a port number, from 0 to 65535'],
    [
      { WEBHOOK_DNS_NAMES: 'a,b c' },
      'WEBHOOK_DNS_NAMES="a,b c": must be DNS names separated by commas; "b c" is none',
    ],
  ])('refuse %j and say what is allowed', (env, problem) => {
    expect(problems(env)).toEqual([problem]);
  });

  it('leave Secrets and caBundles alone where the certificate is provided', () => {
    const env = { CERT_MODE: 'provided', CERT_DIR: '/etc/certificates' };
    expect(controller(env).certificates).toEqual({ mode: 'provided' });
    expect(admission(env).certificates).toEqual({
      mode: 'provided',
      directory: '/etc/certificates',
    });
  });

  it.each<[Environment, string]>([
    [{ CA_SECRET: 'Not_A_Name' }, 'CA_SECRET="Not_A_Name": must be the name of an object'],
    [
      { SERVING_LIFETIME_SECONDS: '100', CA_LIFETIME_SECONDS: '99', CA_PUBLISH_WAIT_SECONDS: '1' },
      'SERVING_LIFETIME_SECONDS="100": must not be more than CA_LIFETIME_SECONDS',
    ],
    [
      { CA_LIFETIME_SECONDS: '180', SERVING_LIFETIME_SECONDS: '60' },
      'CA_LIFETIME_SECONDS="180": must be more than 3 times CA_PUBLISH_WAIT_SECONDS',
    ],
  ])('refuse the certificates of %j', (env, problem) => {
    expect(problems(env)).toEqual([problem]);
  });

  it('refuse a mode of certificates that there is not, in both processes', () => {
    const problem = 'CERT_MODE="selfsigned": must be self-managed or provided';
    expect(problems({ CERT_MODE: 'selfsigned' })).toEqual([problem, problem]);
  });

  it.each(['8081', 'localhost', ':70000', ':', 'a b:1'])('refuse the address %s', (text) => {
    expect(problems({ METRICS_PROBE_BIND_ADDR: text })).toEqual(
      Array.from(
        { length: 2 },
        () =>
          `METRICS_PROBE_BIND_ADDR="${text}": must be [HOST]:PORT such as :8081, or 0 to switch it off`,
      ),
    );
  });

  it.each<[Environment, string]>([
    [
      { LEASE_DURATION_SECONDS: '4' },
      'LEASE_DURATION_SECONDS="4": must be more than LEASE_RENEW_DEADLINE_SECONDS',
    ],
    [
      { LEASE_RENEW_DEADLINE_SECONDS: '1' },
      'LEASE_RENEW_DEADLINE_SECONDS="1": must be more than 1.2 times LEASE_RETRY_SECONDS',
    ],
    [{ LEADER_ELECTION: 'maybe' }, 'LEADER_ELECTION="maybe": must be true or false'],
  ])('refuse the election of %j', (env, problem) => {
    expect(problems(env)).toEqual([problem]);
  });

  it.each([
    'Boost',
    'boost_system',
    'boost.system',
    '-boost',
    'boost-',
    'böost',
    'a b',
    '../etc',
    'a'.repeat(64),
  ])('refuse the namespace %j in every process', (name) => {
    const env = { POD_NAMESPACE: name };
    const problem = `POD_NAMESPACE=${JSON.stringify(name)}: must be the name of a namespace: at most 63 of a-z, 0-9 and -, the first and the last not -`;
    const parsed = [
      parseAdmissionSettings(env),
      parseControllerSettings(env),
      parseCheckSettings(env),
    ];
    expect(parsed).toEqual(parsed.map(() => ({ kind: 'Invalid', problems: [problem] })));
  });

  it.each(['a', '0', '1e3', 'a'.repeat(63)])('take the namespace %s', (name) => {
    expect(controller({ POD_NAMESPACE: name }).namespace).toBe(name);
  });

  it('leave the election out where there is one controller only', () => {
    expect(controller({ LEADER_ELECTION: 'false' }).election).toEqual({ kind: 'Off' });
  });

  it('report every wrong variable at once', () => {
    const parsed = parseControllerSettings({ MGR_CHECK_INTERVAL: 'x', ZAP_LOG_LEVEL: 'loud' });
    expect(parsed).toMatchObject({
      kind: 'Invalid',
      problems: [{}, {}].map(() => expect.any(String)),
    });
  });

  it("say that a variable of upstream's has no effect, and why", () => {
    const parsed = parseControllerSettings({ HTTP2: 'true' });
    expect(parsed).toMatchObject({
      kind: 'Settings',
      warnings: ['HTTP2 has no effect: webhooks are served over HTTP/1.1'],
    });
  });
});
