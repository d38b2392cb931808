import { describe, expect, it } from '@jest/globals';
import { checkHistory } from '../../api/chaos/history';
import type { HistoryInput, HistoryReport, ViolationKind } from '../../api/chaos/history';
import type { BoostSpec } from '../../api/chaos/shapes';
import type { JsonObject } from '../../../src/kube';
import { objectAt } from '../../support/objectAt';
import { ADMISSION, AuditStory, CONTROLLER, OTHER_CONTROLLER, POD, epoch } from './auditStory';

const UNTIL_READY: BoostSpec = {
  percentage: 100,
  seconds: undefined,
  endsWhenReady: true,
  cpuLimits: 'Raise',
};
const WITHOUT_LIMITS: BoostSpec = { ...UNTIL_READY, cpuLimits: 'Remove' };

/** A boost 100 s ago; a pod of 200m that is boosted when it is created, and Ready after 4 s. */
function boostedPod(): AuditStory {
  const story = new AuditStory().boost(-100, UNTIL_READY);
  return story
    .create(0, story.pod('400m', 'marked', 1))
    .bind(1)
    .status(2, story.pod('400m', 'marked', 1))
    .ready(4, story.pod('400m', 'marked', 1));
}

/** And is reverted as it should be. */
function revertedPod(): AuditStory {
  const story = boostedPod();
  return story
    .resize(5, story.pod('200m', 'marked', 2))
    .status(6, story.pod('200m', 'marked', 2))
    .patch(7, story.pod('200m', 'plain', 2));
}

/** A pod with a limit, which had `boosted` for a while. */
function limitedPod(boosted: string, spec: BoostSpec): AuditStory {
  const story = new AuditStory('Burstable').boost(-100, spec);
  return story
    .create(0, story.pod(boosted, 'marked', 1))
    .bind(1)
    .ready(4, story.pod(boosted, 'marked', 1))
    .resize(5, story.pod('250m/1', 'marked', 2))
    .patch(7, story.pod('250m/1', 'plain', 2));
}

const LIMITED: Partial<HistoryInput> = {
  pods: [{ name: POD, shape: 'Burstable', boost: 'until-ready' }],
};

/** A pod that admission has missed. */
function missedPod(): AuditStory {
  const story = new AuditStory().boost(-100, UNTIL_READY);
  return story.create(0, story.pod('200m', 'plain', 1)).bind(1);
}

function check(
  { events }: AuditStory,
  final: readonly JsonObject[],
  changed: Partial<HistoryInput> = {},
): HistoryReport {
  return checkHistory({
    events,
    pods: [{ name: POD, shape: 'RequestOnly', boost: 'until-ready' }],
    final,
    listedAt: epoch(100),
    rules: {
      roleOf: (user) => {
        if (user === ADMISSION) return 'admission';
        return [CONTROLLER, OTHER_CONTROLLER].includes(user) ? 'controller' : 'Other';
      },
      catchUpWithinMs: 20_000,
      staleMs: 15_000,
      deletedGraceMs: 5_000,
    },
    ...changed,
  });
}

function kinds({ violations }: HistoryReport): readonly ViolationKind[] {
  return violations.map(({ kind }) => kind);
}

/** Ends as it should, whatever came before. */
function endedWell(story: AuditStory): readonly JsonObject[] {
  return [story.pod('200m', 'plain', 9)];
}

describe('a history is right', () => {
  it('where a pod was boosted at admission and reverted once', () => {
    const story = revertedPod();
    const report = check(story, endedWell(story));
    expect(kinds(report)).toEqual([]);
    expect(report.verdicts).toEqual([
      { pod: POD, shape: 'RequestOnly', boosted: 'AtAdmission', isReverted: true, delayMs: 1_000 },
    ]);
  });

  it('where a pod was caught up and reverted once', () => {
    const story = missedPod();
    story
      .patch(3, story.pod('200m', 'marked', 1))
      .resize(4, story.pod('400m', 'marked', 2))
      .ready(8, story.pod('400m', 'marked', 2))
      .resize(9, story.pod('200m', 'marked', 3))
      .patch(10, story.pod('200m', 'plain', 3));
    const report = check(story, endedWell(story));
    expect(kinds(report)).toEqual([]);
    expect(report.verdicts).toMatchObject([{ boosted: 'CaughtUp', delayMs: 1_000 }]);
  });

  it('where the answer to the revert was lost when the API server ended', () => {
    const story = boostedPod();
    story
      .resize(5, {}, { stage: 'Received', code: 0, response: undefined })
      .status(6, story.pod('200m', 'marked', 2))
      .patch(7, story.pod('200m', 'plain', 2));
    const report = check(story, endedWell(story));
    expect(kinds(report)).toEqual([]);
    expect(report.unanswered).toBe(1);
    expect(report.verdicts).toMatchObject([{ isReverted: true }]);
  });

  it('where a pod was deleted while it was boosted', () => {
    expect(kinds(check(boostedPod().delete(5), []))).toEqual([]);
  });

  it('where a pod was deleted before anybody could catch up', () => {
    const report = check(missedPod().delete(10), []);
    expect(kinds(report)).toEqual([]);
    expect(report.verdicts).toMatchObject([{ boosted: 'Excused' }]);
  });

  it('where the boost of a pod was over before anybody could catch up', () => {
    const story = new AuditStory().boost(-100, { ...UNTIL_READY, seconds: 10 });
    story.create(0, story.pod('200m', 'plain', 1)).bind(1);
    const report = check(story, endedWell(story));
    expect(kinds(report)).toEqual([]);
    expect(report.verdicts).toMatchObject([{ boosted: 'Excused' }]);
  });

  it('where a pod had no boost to get', () => {
    const story = new AuditStory().boost(-100, UNTIL_READY).boost(-10, undefined);
    story.create(0, story.pod('200m', 'plain', 1)).boost(50, UNTIL_READY);
    const report = check(story, endedWell(story));
    expect(kinds(report)).toEqual([]);
    expect(report.verdicts).toMatchObject([{ boosted: 'Excused' }]);
  });

  it('where a boost was edited: its pods have what it said a moment ago, or says now', () => {
    const story = new AuditStory().boost(-100, UNTIL_READY);
    story
      .boost(-1, { ...UNTIL_READY, percentage: 200 })
      .create(0, story.pod('400m', 'marked', 1))
      .ready(4, story.pod('400m', 'marked', 1))
      .resize(5, story.pod('200m', 'marked', 2))
      .patch(7, story.pod('200m', 'plain', 2));
    expect(kinds(check(story, endedWell(story)))).toEqual([]);
  });

  it.each([
    ['was created without its limit, and has it back', '500m/-', WITHOUT_LIMITS],
    ['was created with a raised one', '500m/2', UNTIL_READY],
  ])('where a pod %s', (_what, boosted, spec) => {
    const story = limitedPod(boosted, spec);
    expect(kinds(check(story, [story.pod('250m/1', 'plain', 2)], LIMITED))).toEqual([]);
  });

  it('where a missed pod was raised in place, which takes no limit away', () => {
    const story = new AuditStory('Burstable').boost(-100, WITHOUT_LIMITS);
    story
      .create(0, story.pod('250m/1', 'plain', 1))
      .bind(1)
      .resize(2, story.pod('500m/2', 'marked', 2))
      .ready(4, story.pod('500m/2', 'marked', 2))
      .resize(5, story.pod('250m/1', 'marked', 3));
    expect(kinds(check(story, [story.pod('250m/1', 'plain', 3)], LIMITED))).toEqual([]);
  });

  it('where a refused write changed nothing, and is counted', () => {
    const story = revertedPod();
    story.resize(8, {}, { code: 422, user: OTHER_CONTROLLER });
    const report = check(story, endedWell(story));
    expect(kinds(report)).toEqual([]);
    expect(report.refused).toBe(1);
  });
});

describe('a history is wrong', () => {
  it('where a pod of the plan was never created', () => {
    expect(kinds(check(new AuditStory(), []))).toEqual(['NotCreated']);
  });

  it('where an eligible pod never got its boost', () => {
    const story = missedPod();
    expect(kinds(check(story, endedWell(story)))).toEqual(['Missed']);
  });

  it('where a pod got more than its boost says', () => {
    const story = new AuditStory().boost(-100, UNTIL_READY);
    story
      .create(0, story.pod('800m', 'marked', 1))
      .ready(4, story.pod('800m', 'marked', 1))
      .resize(5, story.pod('200m', 'marked', 2));
    expect(kinds(check(story, endedWell(story)))).toEqual(['WrongCpu']);
  });

  it.each([
    ['lost its limit to a boost that removes none', '500m/-', UNTIL_READY],
    ['kept a limit that its boost removes', '500m/2', WITHOUT_LIMITS],
  ])('where a pod %s', (_what, boosted, spec) => {
    const story = limitedPod(boosted, spec);
    expect(kinds(check(story, [story.pod('250m/1', 'plain', 2)], LIMITED))).toEqual(['WrongCpu']);
  });

  it('where a pod never got back the limit that its boost had removed', () => {
    const story = limitedPod('500m/-', WITHOUT_LIMITS);
    story.resize(8, story.pod('250m/-', 'marked', 3));
    const report = check(story, [story.pod('250m/-', 'plain', 3)], LIMITED);
    expect(kinds(report)).toContain('LeftBoosted');
  });

  it('where a pod was reverted to something that is not its own', () => {
    const story = boostedPod();
    story.resize(5, story.pod('300m', 'marked', 2));
    expect(kinds(check(story, endedWell(story)))).toContain('WrongCpu');
  });

  it('where CPU changed with nobody who asked for it', () => {
    const story = boostedPod();
    story.status(5, story.pod('200m', 'marked', 2));
    expect(kinds(check(story, endedWell(story)))).toEqual(['Unexplained']);
  });

  it('where a boosted pod was raised again', () => {
    const story = boostedPod();
    story
      .boost(4.1, { ...UNTIL_READY, percentage: 200 })
      .resize(5, story.pod('600m', 'marked', 2))
      .resize(6, story.pod('200m', 'marked', 3));
    expect(kinds(check(story, endedWell(story)))).toEqual(['RaisedTwice']);
  });

  it('where a pod was raised after its revert, and so reverted twice', () => {
    const story = revertedPod();
    story.resize(8, story.pod('400m', 'marked', 3)).resize(9, story.pod('200m', 'marked', 4));
    expect(kinds(check(story, endedWell(story)))).toEqual(['RaisedAfterRevert', 'RevertedTwice']);
  });

  it('where two controllers undid each other', () => {
    const story = revertedPod();
    story
      .resize(8, story.pod('400m', 'marked', 3), { user: OTHER_CONTROLLER })
      .resize(9, story.pod('200m', 'marked', 4));
    expect(kinds(check(story, endedWell(story)))).toEqual([
      'RaisedAfterRevert',
      'ConflictingWrites',
      'RevertedTwice',
      'ConflictingWrites',
    ]);
  });

  it('where a revert left the generation as it was', () => {
    const story = boostedPod();
    story.resize(5, story.pod('200m', 'marked', 1));
    expect(kinds(check(story, endedWell(story)))).toEqual(['SameGeneration']);
  });

  it('where a boost ended before its time', () => {
    const story = new AuditStory().boost(-100, UNTIL_READY);
    story
      .create(0, story.pod('400m', 'marked', 1))
      .bind(1)
      .resize(5, story.pod('200m', 'marked', 2))
      .ready(50, story.pod('200m', 'plain', 2));
    expect(kinds(check(story, endedWell(story)))).toEqual(['EndedEarly']);
  });

  it('where a timed boost ended before its time', () => {
    const timed = { ...UNTIL_READY, seconds: 10, endsWhenReady: false };
    const story = new AuditStory().boost(-100, timed);
    story
      .create(0, story.pod('400m', 'marked', 1))
      .bind(1)
      .resize(8, story.pod('200m', 'marked', 2));
    expect(kinds(check(story, endedWell(story)))).toEqual(['EndedEarly']);
  });

  it('where a pod is still boosted in the end', () => {
    const story = boostedPod();
    expect(kinds(check(story, [story.pod('400m', 'marked', 1)]))).toEqual(['LeftBoosted']);
  });

  it('where a pod still carries the marker in the end', () => {
    const story = boostedPod();
    story.resize(5, story.pod('200m', 'marked', 2));
    expect(kinds(check(story, [story.pod('200m', 'marked', 2)]))).toEqual(['MarkerLeft']);
  });

  it('where the marker went before the CPU', () => {
    const story = boostedPod();
    story.patch(5, story.pod('400m', 'plain', 1)).resize(6, story.pod('200m', 'plain', 2));
    expect(kinds(check(story, endedWell(story)))).toEqual(['MarkerLost']);
  });

  it('where a write changed something else of a pod', () => {
    const story = revertedPod();
    const last = story.pod('200m', 'plain', 3);
    const metadata = { ...objectAt(last, 'metadata'), labels: { team: 'others' } };
    const changed = { ...last, metadata };
    story.patch(8, changed);
    expect(kinds(check(story, [changed]))).toEqual(['OtherFieldChanged']);
  });

  it('where admission wrote something', () => {
    const story = revertedPod();
    story.patch(8, story.pod('200m', 'plain', 2), { user: ADMISSION });
    expect(kinds(check(story, endedWell(story)))).toEqual(['AdmissionWrote']);
  });

  it.each([
    ['created with more CPU', '500m', 'plain', ['MarkerLost', 'Touched']],
    ['marked', '250m', 'marked', ['Touched']],
  ] as const)('where a pod that no boost selects was %s', (_, cpu, marked, expected) => {
    const story = new AuditStory('Unselected').boost(-100, UNTIL_READY);
    const input = { pods: [{ name: POD, shape: 'Unselected', boost: 'until-ready' } as const] };
    story.create(0, story.pod(cpu, marked, 1)).delete(1);
    expect(kinds(check(story, [], input))).toEqual(expected);
  });

  it('where a controller wrote to a pod that no boost selects', () => {
    const story = new AuditStory('Unselected').boost(-100, UNTIL_READY);
    const input = { pods: [{ name: POD, shape: 'Unselected', boost: 'until-ready' } as const] };
    const pod = story.pod('250m', 'plain', 1);
    story.create(0, pod).patch(1, pod).delete(2);
    expect(kinds(check(story, [], input))).toEqual(['Touched']);
  });
});

describe('of a history is told', () => {
  it('what happened to each offending pod', () => {
    const story = boostedPod();
    const { histories } = check(story, [story.pod('400m', 'marked', 1)]);
    expect(histories.get(POD)).toHaveLength(4);
    expect(histories.get(POD)?.[0]).toMatch(
      /^2027-01-15T08:00:00\.000Z create by kubelet: 201 generation 1, .*400.*, marked$/,
    );
  });

  it('how many writes came from a controller that did not lead any more', () => {
    const story = boostedPod().lease(4.1, CONTROLLER).lease(4.5, OTHER_CONTROLLER);
    story.resize(5, story.pod('200m', 'marked', 2));
    expect(check(story, endedWell(story)).byFormerLeader).toBe(1);
  });

  it('the time from the end of a boost that was deleted, its grace included', () => {
    const story = new AuditStory().boost(-100, UNTIL_READY);
    story
      .create(0, story.pod('400m', 'marked', 1))
      .boost(10, undefined)
      .resize(17, story.pod('200m', 'marked', 2))
      .patch(18, story.pod('200m', 'plain', 2));
    // Asked for 5 ms before it was done.
    expect(check(story, endedWell(story)).verdicts).toMatchObject([{ delayMs: 2_005 }]);
  });
});
