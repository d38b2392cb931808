/** Wires the admission process. */
import { BoostWatcher, startAdmission } from '../admission';
import type { ProcessContext, RunningProcess } from './processLife';
import type { AdmissionSettings } from './settings';

export async function startAdmissionProcess(
  context: ProcessContext<AdmissionSettings>,
): Promise<RunningProcess> {
  const boosts = new BoostWatcher(context);
  await boosts.start();
  const server = await startAdmission({ ...context, boosts });
  return {
    checks: server.checks,
    stop: async () => {
      await server.stop();
      await boosts.close();
    },
  };
}
