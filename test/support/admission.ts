/** The webhooks in this process, called by a real API server. */
import { expect } from '@jest/globals';
import { NamespaceWatcher, startAdmission } from '../../src/admission';
import type { BoostDefaults, NamespaceView } from '../../src/admission';
import {
  LIMIT_RANGES,
  PODS,
  RESOURCE_QUOTAS,
  createKubeClient,
  loadKubeConfig,
} from '../../src/kube';
import { systemClock } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { createLogger, createMetrics } from '../../src/observability';
import type { Metrics } from '../../src/observability';
import { aPod } from './builders';
import { aCertificate, always } from './certificates';
import type { ControlPlane } from './controlPlane';
import { eventually } from './eventually';
import { installWebhooks } from './webhooks';
import type { WebhookTarget } from './webhooks';

export interface RunningAdmission {
  readonly target: WebhookTarget;
  readonly metrics: Metrics;
  /** What a review in this namespace is judged by. */
  view(namespace: string): NamespaceView;
  stop(): Promise<void>;
}

/** Wired as src/cli/admissionCommand.ts does, on a free port. Nobody calls it before `serveWith`. */
export async function runAdmission(
  controlPlane: ControlPlane,
  defaults: BoostDefaults = {},
): Promise<RunningAdmission> {
  const kubeConfig = loadKubeConfig({ kind: 'File', path: controlPlane.kubeconfigPath });
  const clock = systemClock();
  const client = createKubeClient(kubeConfig, { clock });
  const logger = createLogger('silent', {});
  const metrics = createMetrics();
  const certificate = await aCertificate();
  const namespaces = new NamespaceWatcher({ kubeConfig, client, clock, logger, defaults });
  await namespaces.start();
  const admission = await startAdmission({
    namespaces,
    certificates: always(certificate),
    settings: { webhookAddress: { host: '127.0.0.1', port: 0 }, drainMs: 0 },
    logger,
    metrics,
    clock,
  });
  await eventually(() => {
    expect(admission.checks.ready.flatMap(({ problem }) => problem() ?? [])).toEqual([]);
  });
  return {
    target: {
      url: `https://127.0.0.1:${admission.port}`,
      caBundle: certificate.ca,
    },
    metrics,
    view: (namespace) => namespaces.view(namespace),
    stop: async () => {
      await admission.stop();
      await namespaces.close();
      await client.close();
    },
  };
}

/** Has the API server call this server, and returns once it does. */
export async function serveWith(
  admission: RunningAdmission,
  { client }: ControlPlane,
): Promise<void> {
  await installWebhooks(client, admission.target);
  await eventually(async () => {
    const before = await callsOf(admission);
    await client.create({ ...PODS, namespace: 'default' }, aPod(), { dryRun: true });
    expect(await callsOf(admission)).toBeGreaterThan(before);
  });
}

/** How many reviews were answered so far. */
export async function callsOf({ metrics }: RunningAdmission): Promise<number> {
  const { values } = await metrics.admissionRequests.get();
  return values.reduce((sum, { value }) => sum + value, 0);
}

/** A LimitRange that the webhooks know of. */
export async function createLimitRange(
  admission: RunningAdmission,
  { client }: ControlPlane,
  namespace: string,
  limits: JsonObject,
): Promise<void> {
  await client.create(
    { ...LIMIT_RANGES, namespace },
    {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'limits' },
      spec: { limits: [limits] },
    },
  );
  await eventually(() => {
    expect(admission.view(namespace).limitRanges).toHaveLength(1);
  });
}

/** A ResourceQuota that the webhooks know of, counted as the controller manager would. */
export async function createQuota(
  admission: RunningAdmission,
  { client }: ControlPlane,
  namespace: string,
  spec: JsonObject & { readonly hard: Readonly<Record<string, string>> },
): Promise<void> {
  const ref = { ...RESOURCE_QUOTAS, namespace, name: 'quota' };
  await client.create(ref, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'quota' },
    spec,
  });
  const used = Object.fromEntries(Object.keys(spec.hard).map((key) => [key, '0']));
  await client.patch(
    { ...ref, subresource: 'status' },
    { type: 'merge', body: { status: { hard: spec.hard, used } } },
  );
  await eventually(() => {
    expect(admission.view(namespace).quotas).toHaveLength(1);
  });
}
