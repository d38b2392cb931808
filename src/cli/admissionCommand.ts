/** Wires the admission process. */
import { NamespaceWatcher, startAdmission } from '../admission';
import type { ProcessContext, RunningProcess } from './processLife';
import type { AdmissionSettings } from './settings';

export async function startAdmissionProcess(
  context: ProcessContext<AdmissionSettings>,
): Promise<RunningProcess> {
  const namespaces = new NamespaceWatcher({
    ...context,
    preemption: context.settings.preemption,
  });
  await namespaces.start();
  const server = await startAdmission({ ...context, namespaces });
  return {
    checks: server.checks,
    stop: async () => {
      await server.stop();
      await namespaces.close();
    },
  };
}
