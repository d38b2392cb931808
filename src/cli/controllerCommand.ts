/** Wires the controller process: it watches at once, and acts while it leads. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { BoostOperator } from '../controller';
import { LeaseElector } from '../kube';
import { controllerLease } from './controllerLease';
import type { ProcessContext, RunningProcess } from './processLife';
import type { ControllerSettings } from './settings';

export async function startControllerProcess(
  context: ProcessContext<ControllerSettings>,
): Promise<RunningProcess> {
  const operator = new BoostOperator(context);
  await operator.start();
  const checks = { live: [], ready: operator.checks };
  const { election } = context.settings;
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

function newElector(
  { client, clock, kubeConfig, logger, metrics, settings }: ProcessContext<ControllerSettings>,
  operator: BoostOperator,
  lease: Extract<ControllerSettings['election'], { readonly kind: 'Lease' }>['lease'],
): LeaseElector {
  const elector = new LeaseElector({
    client,
    clock,
    logger,
    lease: controllerLease(settings.namespace, kubeConfig),
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
