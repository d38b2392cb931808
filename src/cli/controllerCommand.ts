/** Wires the controller process: it watches at once, and acts while it leads. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { CertificateKeeper } from '../certificates';
import { BoostOperator } from '../controller';
import { LeaseElector } from '../kube';
import { controllerLease } from './controllerLease';
import { ownNamespace } from './ownNamespace';
import type { ProcessContext, RunningProcess } from './processLife';
import type { ControllerSettings } from './settings';

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
  const keeper = startKeeper(context);
  const live = [...operator.liveChecks, ...(keeper?.liveChecks ?? [])];
  const { election } = settings;
  if (election.kind === 'Off') {
    operator.act(() => true);
    context.metrics.leader.set(1);
    return {
      checks: { live, ready: operator.checks },
      stop: async () => {
        await keeper?.stop();
        await operator.close();
      },
    };
  }
  const elector = newElector(context, operator, election.lease);
  // A process whose caches are empty would lead without being able to judge anything.
  void operator.synced.then(() => {
    elector.start();
  });
  return {
    checks: { live: [...live, ...elector.liveChecks], ready: operator.checks },
    stop: async () => {
      // The next leader waits for this one, and nobody for the keeper of certificates.
      await elector.stop();
      await keeper?.stop();
      await operator.close();
    },
  };
}

/** In each replica, leader or not; none where somebody else provides the certificates. */
function startKeeper(context: ProcessContext<ControllerSettings>): CertificateKeeper | undefined {
  const { certificates } = context.settings;
  if (certificates.mode === 'provided') return undefined;
  const { service, furtherNames } = certificates;
  const namespace = ownNamespace(context);
  const keeper = new CertificateKeeper({
    ...context,
    names: { ...certificates, namespace },
    settings: {
      ...certificates,
      names: [...serviceNames(service, namespace), ...furtherNames],
    },
  });
  keeper.start();
  return keeper;
}

/** The API server asks for the first; people who look for what is wrong may use any. */
function serviceNames(service: string, namespace: string): readonly string[] {
  const inNamespace = `${service}.${namespace}`;
  const names = [`${inNamespace}.svc`, `${inNamespace}.svc.cluster.local`, inNamespace, service];
  return [...names, 'localhost', '127.0.0.1'];
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
    lease: controllerLease(context),
    identity: `${hostname()}_${randomUUID()}`,
    settings: lease,
    random: Math.random,
    onElected: () => {
      operator.act(() => elector.isLeading());
    },
    onDeposed: () => operator.rest(),
    onSilence: () => {
      operator.reopenWatches();
    },
  });
  metrics.beforeText(() => {
    metrics.leader.set(elector.isLeading() ? 1 : 0);
  });
  return elector;
}
