/** Guaranteed pods, where BOOST_GUARANTEED=false leaves them alone. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SKIPPED_KEY } from '../../src/boost-engine';
import { runAdmission, serveWith } from '../support/admission';
import type { RunningAdmission } from '../support/admission';
import { RESOURCE_SHAPES, aBoost, aContainer, aPod, percentageIncrease } from '../support/builders';
import type { ResourceShape } from '../support/builders';
import { eventually } from '../support/eventually';
import { World } from '../support/world';

let world: World;
let admission: RunningAdmission;
let namespace: string;

beforeAll(async () => {
  world = await World.start();
  admission = await runAdmission(world.controlPlane, { guaranteed: 'Leave' });
  await serveWith(admission, world.controlPlane);
  namespace = await world.namespace();
  const spec = { resourcePolicy: { containerPolicies: [percentageIncrease('app', 100)] } };
  await world.createBoost(aBoost({ namespace, spec }));
  await eventually(() => {
    expect([...admission.view(namespace).boosts]).toHaveLength(1);
  });
});

afterAll(async () => {
  await admission.stop();
  await world.stop();
});

it.each<[string, ResourceShape, string | undefined, string]>([
  ['is Guaranteed is left as it is', 'Guaranteed', 'GuaranteedPod', '500m'],
  ['is of another class is boosted', 'request and limit', undefined, '500m'],
])('a pod that %s', async (_what, shape, skipped, request) => {
  const name = shape === 'Guaranteed' ? 'guaranteed' : 'burstable';
  const containers = [aContainer({ resources: RESOURCE_SHAPES[shape] })];
  const pod = await world.createPod(aPod({ namespace, name, containers }));
  const { annotations, containers: stored } = await world.read(pod);
  expect(annotations?.get(SKIPPED_KEY)).toBe(skipped);
  expect(stored[0]?.cpu.request).toBe(request);
});
