/** The timeline of the demo: what it makes of the versions of a pod that a watch delivers. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { BOOST_KEY, SKIPPED_KEY, formatRecord } from '../../../src/boost-engine';
import type { JsonObject } from '../../../src/kube';
import { createTerminal } from '../../../demo/terminal';
import { Timeline, cpuText } from '../../../demo/timeline';
import { aContainer, aPod } from '../../support/builders';
import type { PodOverrides } from '../../support/builders';
import { ManualClock } from '../../support/manualClock';

const ORIGINAL = { requests: { cpu: '500m' }, limits: { cpu: '500m' } };
const MORE = { requests: { cpu: '1' }, limits: { cpu: '1' } };

const RECORD = formatRecord({
  state: 'Active',
  timestamp: undefined,
  uid: undefined,
  generation: 1,
  containers: new Map([
    [
      'app',
      { original: { request: '500m', limit: '500m' }, boosted: { request: '1', limit: '1' } },
    ],
  ]),
});

const MARKED: PodOverrides = {
  labels: { [BOOST_KEY]: 'shop' },
  annotations: { [BOOST_KEY]: RECORD },
};

const READY = { conditions: [{ type: 'Ready', status: 'True' }] };

function pod(resources: JsonObject, overrides: PodOverrides = {}): JsonObject {
  return aPod({ name: 'spring', containers: [aContainer({ resources })], ...overrides });
}

let clock: ManualClock;
let timeline: Timeline;
let lines: string[];

beforeEach(() => {
  clock = new ManualClock();
  lines = [];
  const output = {
    write: (text: string) => {
      lines.push(text.trim().replace(/ {2,}/g, ' | '));
    },
  };
  const reasons = {
    ofEnd: () => Promise.resolve('ConditionMet'),
    ofSkip: () => 'NoPolicy',
  };
  timeline = new Timeline(createTerminal(output, {}), reasons, clock);
});

describe('the timeline', () => {
  it('tells the life of a boosted pod from its creation to its own CPU', async () => {
    await timeline.see(pod(MORE, MARKED));
    await clock.advance(700);
    await timeline.see(pod(MORE, { ...MARKED, status: { phase: 'Running' } }));
    await clock.advance(1_300);
    await timeline.see(pod(MORE, { ...MARKED, status: { phase: 'Running', ...READY } }));
    await clock.advance(100);
    await timeline.see(pod(ORIGINAL, { ...MARKED, status: { phase: 'Running', ...READY } }));
    expect(timeline.isBack('spring')).toBe(false);
    await timeline.see(pod(ORIGINAL, { status: { phase: 'Running', ...READY } }));

    expect(lines).toEqual([
      '0.0s | spring | created with more CPU | 500m -> 1 | boost "shop"',
      expect.stringMatching(/^0\.7s \| spring \| runs/),
      '2.0s | spring | Ready',
      expect.stringMatching(
        /^2\.1s \| spring \| CPU .* \| 500m -> 1 -> 500m \| ConditionMet: the pod condition/,
      ),
      expect.stringMatching(/^2\.1s \| spring \| .*confirmed/),
    ]);
    expect(timeline.isBack('spring')).toBe(true);
    expect(timeline.isReady('spring')).toBe(true);
  });

  it('keeps for the summary what each container had, and for how long', async () => {
    const started = clock.now();
    await timeline.see(pod(MORE, MARKED));
    await clock.advance(3_000);
    await timeline.see(pod(ORIGINAL, MARKED));

    expect(timeline.containers()).toEqual([
      {
        pod: 'spring',
        container: 'app',
        cpu: ['500m', '1', '500m'],
        raisedAt: started,
        loweredAt: started + 3_000,
        reason: 'ConditionMet',
      },
    ]);
  });

  it('says why a pod was left as it is', async () => {
    const annotations = { [SKIPPED_KEY]: 'RestartsOnResize' };
    await timeline.see(pod(ORIGINAL, { annotations }));

    expect(lines).toEqual([
      expect.stringMatching(/\| created as it is \| 500m \| RestartsOnResize: its resizePolicy/),
    ]);
    expect(timeline.isBack('spring')).toBe(false);
  });

  it('names the container where a pod has several, and why one was left alone', async () => {
    const containers = [
      aContainer({ resources: MORE }),
      aContainer({ name: 'proxy', resources: ORIGINAL }),
    ];
    await timeline.see(pod(MORE, { ...MARKED, containers }));

    expect(lines).toEqual([
      expect.stringMatching(/\| spring\/app \| created with more CPU \| 500m -> 1 \|/),
      expect.stringMatching(/\| spring\/proxy \| created as it is \| 500m \| NoPolicy: /),
    ]);
  });

  it('says nothing about a version in which nothing of it has changed', async () => {
    await timeline.see(pod(MORE, MARKED));
    await timeline.see(pod(MORE, MARKED));

    expect(lines).toHaveLength(1);
  });

  it('takes a pod that was created again under its name for a new one', async () => {
    await timeline.see(pod(MORE, MARKED));
    timeline.forget(pod(MORE, MARKED));
    await timeline.see(pod(MORE, MARKED));

    expect(lines).toHaveLength(2);
  });
});

describe('CPU as text', () => {
  it.each([
    [{ request: '500m', limit: '500m' }, '500m'],
    [{ request: '250m', limit: '1' }, '250m/1'],
    [{ request: '250m' }, '250m'],
    [{ limit: '1' }, '-/1'],
    [{}, '-'],
  ])('%j is %s', (cpu, text) => {
    expect(cpuText(cpu)).toBe(text);
  });
});
