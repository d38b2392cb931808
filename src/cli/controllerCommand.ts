/** Wires the controller process: it watches at once, and acts while it leads. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { BoostOperator } from '../controller';
import { LeaseElector } from '../kube';
import type { ProcessContext, RunningProcess } from './processLife';
import type { ControllerSettings } from './settings';

const LEASE_NAME = 'startup-cpu-boost-controller';

/** Where neither POD_NAMESPACE nor the kubeconfig names one. */
const FALLBACK_NAMESPACE = 'default';

export async function startControllerProcess(
  context: ProcessContext<ControllerSettings>,
): Promise<RunningProcess> {
  const { settings } = context;
  const operator = new BoostOperator({
    ...context,
    // The webhooks leave our own namespace out, in every form of install.
    settings: {
      ...settings,
      catchUpExcludedNamespaces: [
        ...settings.catchUpExcludedNamespaces,
        ...(settings.namespace === undefined ? [] : [settings.namespace]),
      ],
    },
    mayRaise: () => settings.raisesInPlace,
  });
  await operator.start();
  const checks = { live: [], ready: operator.checks };
  const { election } = settings;
  if (election.kind === 'Off') {
    operator.act(() => true);
    context.metrics.leader.set(1);
    return { checks, stop: () => operator.close() };
  }
  const elector = newElector(context, operator, election.lease);
  // A process whose caches are empty would lead without being able to judge anything.
  void operator.synced.then(() => {
    elector.start();
  });
  return {
    checks,
    stop: async () => {
      await elector.stop();
      await operator.close();
    },
  };
}

/** The namespace of this process. */
function namespaceOf({ kubeConfig, settings }: ProcessContext<ControllerSettings>): string {
  const context = kubeConfig.getContextObject(kubeConfig.getCurrentContext());
  return settings.namespace ?? context?.namespace ?? FALLBACK_NAMESPACE;
}

function newElector(
  context: ProcessContext<ControllerSettings>,
  operator: BoostOperator,
  lease: Extract<ControllerSettings['election'], { readonly kind: 'Lease' }>['lease'],
): LeaseElector {
  const { client, clock, logger, metrics } = context;
  const elector = new LeaseElector({
    client,
    clock,
    logger,
    lease: { namespace: namespaceOf(context), name: LEASE_NAME },
    identity: `${hostname()}_${randomUUID()}`,
    settings: lease,
    random: Math.random,
    onElected: () => {
      operator.act(() => elector.isLeading());
    },
    onDeposed: () => operator.rest(),
  });
  metrics.beforeText(() => {
    metrics.leader.set(elector.isLeading() ? 1 : 0);
  });
  return elector;
}
