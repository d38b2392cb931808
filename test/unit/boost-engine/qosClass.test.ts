/** The QoS class: the cases of ComputePodQOS in kubernetes/pkg/apis/core/helper/qos. */
import { describe, expect, it } from '@jest/globals';
import { qosClassOf } from '../../../src/boost-engine/qosClass';
import type { QosClass } from '../../../src/boost-engine/qosClass';

type List = Readonly<Record<string, string>>;

function container(requests?: List, limits?: List) {
  const map = (list: List | undefined) =>
    list === undefined ? undefined : new Map(Object.entries(list));
  return { requests: map(requests), limits: map(limits) };
}

const full = { cpu: '100m', memory: '100Mi' };
const guaranteed = container(full, full);

describe('qosClassOf', () => {
  it.each<[string, QosClass, readonly ReturnType<typeof container>[]]>([
    ['no containers', 'BestEffort', []],
    ['nothing asked for', 'BestEffort', [container()]],
    ['empty lists', 'BestEffort', [container({}, {})]],
    ['zeros', 'BestEffort', [container({ cpu: '0', memory: '0' }, { cpu: '0' })]],
    [
      'only resources that do not count',
      'BestEffort',
      [container({ 'ephemeral-storage': '1Gi' }, { 'nvidia.com/gpu': '1' })],
    ],
    ['request = limit of both', 'Guaranteed', [guaranteed]],
    [
      'the same in other words',
      'Guaranteed',
      [container({ cpu: '0.1', memory: '104857600' }, full)],
    ],
    ['two such containers', 'Guaranteed', [guaranteed, guaranteed]],
    ['more resources beside', 'Guaranteed', [container({ ...full, 'nvidia.com/gpu': '1' }, full)]],
    ['one such and one with nothing', 'Burstable', [guaranteed, container()]],
    ['request below limit', 'Burstable', [container({ ...full, cpu: '50m' }, full)]],
    ['limits without requests', 'Burstable', [container(undefined, full)]],
    ['requests without limits', 'Burstable', [container(full)]],
    ['CPU alone', 'Burstable', [container({ cpu: '1' }, { cpu: '1' })]],
    ['memory alone', 'Burstable', [container({ memory: '1Gi' }, { memory: '1Gi' })]],
    ['a limit of zero', 'Burstable', [container(full, { ...full, cpu: '0' })]],
    [
      'one container with both, another with CPU alone',
      'Burstable',
      [guaranteed, container({ cpu: '1' }, { cpu: '1' })],
    ],
    // The class is judged by the sums over all containers.
    [
      'sums that are equal',
      'Guaranteed',
      [
        container({ cpu: '1', memory: '1Gi' }, { cpu: '2', memory: '1Gi' }),
        container({ cpu: '2', memory: '1Gi' }, { cpu: '1', memory: '1Gi' }),
      ],
    ],
  ])('%s: %s', (_what, expected, containers) => {
    expect(qosClassOf(containers)).toBe(expected);
  });

  it('counts init containers that are passed with the others', () => {
    expect(qosClassOf([guaranteed, container({ cpu: '1' })])).toBe('Burstable');
  });
});
