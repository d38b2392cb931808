/** Wires the admission process. */
import { ControllerLease, NamespaceWatcher, startAdmission } from '../admission';
import { controllerLease } from './controllerLease';
import type { ProcessContext, RunningProcess } from './processLife';
import type { AdmissionSettings } from './settings';

export async function startAdmissionProcess(
  context: ProcessContext<AdmissionSettings>,
): Promise<RunningProcess> {
  const lease = watchLease(context);
  const namespaces = new NamespaceWatcher({
    ...context,
    ...(lease === undefined ? {} : { controllerLease: lease }),
  });
  await namespaces.start();
  const server = await startAdmission({ ...context, namespaces });
  return {
    checks: server.checks,
    stop: async () => {
      await server.stop();
      await namespaces.close();
      await lease?.stop();
    },
  };
}

function watchLease(context: ProcessContext<AdmissionSettings>): ControllerLease | undefined {
  const { kubeConfig, settings } = context;
  const { namespace, noControllerGraceMs: graceMs } = settings;
  if (graceMs === undefined) return undefined;
  const lease = new ControllerLease({
    ...context,
    lease: controllerLease(namespace, kubeConfig),
    graceMs,
  });
  lease.start();
  return lease;
}
