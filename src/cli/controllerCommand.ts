/** Wires the controller process. */
import { BoostOperator } from '../controller';
import type { ProcessContext, RunningProcess } from './processLife';
import type { ControllerSettings } from './settings';

export async function startControllerProcess(
  context: ProcessContext<ControllerSettings>,
): Promise<RunningProcess> {
  const operator = new BoostOperator(context);
  await operator.start();
  operator.act(() => true);
  return {
    checks: { live: [], ready: operator.checks },
    stop: () => operator.close(),
  };
}
