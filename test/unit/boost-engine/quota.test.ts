/** ResourceQuotas: which CPU values are counted, with the scopes of kubernetes/pkg/quota. */
import { describe, expect, it } from '@jest/globals';
import { trackedCpu } from '../../../src/boost-engine/quota';
import type { QuotaSubject } from '../../../src/boost-engine/quota';

const subject: QuotaSubject = {
  qosClass: 'Burstable',
  priorityClassName: 'high',
  hasDeadline: false,
};

const quota = (hard: readonly string[], more: object = {}) => ({
  spec: { hard: Object.fromEntries(hard.map((name) => [name, '1'])), ...more },
});

const expression = (scopeName: string, operator: string, values?: readonly string[]) => ({
  scopeSelector: {
    matchExpressions: [{ scopeName, operator, ...(values === undefined ? {} : { values }) }],
  },
});

describe('trackedCpu', () => {
  it.each<[string, readonly unknown[], boolean, boolean]>([
    ['no quota', [], false, false],
    ['cpu', [quota(['cpu'])], true, false],
    ['requests.cpu', [quota(['requests.cpu'])], true, false],
    ['limits.cpu', [quota(['limits.cpu'])], false, true],
    ['memory and pods', [quota(['memory', 'pods'])], false, false],
    ['two quotas', [quota(['cpu']), quota(['limits.cpu'])], true, true],
    [
      'what is none',
      [null, 7, {}, { spec: { hard: 'cpu' } }, { spec: { hard: ['cpu'] } }],
      false,
      false,
    ],
  ])('%s: requests %s, limits %s', (_what, quotas, requests, limits) => {
    expect(trackedCpu(quotas, subject)).toEqual({ requests, limits });
  });

  it.each<[string, object, Partial<QuotaSubject>, boolean]>([
    ['Terminating', { scopes: ['Terminating'] }, {}, false],
    ['Terminating', { scopes: ['Terminating'] }, { hasDeadline: true }, true],
    ['NotTerminating', { scopes: ['NotTerminating'] }, {}, true],
    ['NotTerminating', { scopes: ['NotTerminating'] }, { hasDeadline: true }, false],
    ['BestEffort', { scopes: ['BestEffort'] }, {}, false],
    ['BestEffort', { scopes: ['BestEffort'] }, { qosClass: 'BestEffort' }, true],
    ['NotBestEffort', { scopes: ['NotBestEffort'] }, {}, true],
    [
      'two scopes of which one does not match',
      { scopes: ['NotBestEffort', 'Terminating'] },
      {},
      false,
    ],
    ['an unknown scope', { scopes: ['Tomorrow'] }, {}, true],
    ['a scope that every object has', { scopes: ['constructor'] }, {}, true],
    ['no scope at all', { scopes: null, scopeSelector: null }, {}, true],
    ['class In', expression('PriorityClass', 'In', ['high']), {}, true],
    ['another class In', expression('PriorityClass', 'In', ['low']), {}, false],
    [
      'no class In the empty one',
      expression('PriorityClass', 'In', ['']),
      { priorityClassName: '' },
      false,
    ],
    ['class NotIn', expression('PriorityClass', 'NotIn', ['high']), {}, false],
    [
      'no class NotIn',
      expression('PriorityClass', 'NotIn', ['high']),
      { priorityClassName: '' },
      true,
    ],
    ['class Exists', expression('PriorityClass', 'Exists'), {}, true],
    ['no class Exists', expression('PriorityClass', 'Exists'), { priorityClassName: '' }, false],
    ['class DoesNotExist', expression('PriorityClass', 'DoesNotExist'), {}, false],
    ['another scope by selector', expression('BestEffort', 'Exists'), {}, false],
    ['an unknown operator', expression('PriorityClass', 'Like', ['h*']), {}, true],
  ])('scope %s (%j, %j): counted %s', (_what, scopes, overrides, expected) => {
    const tracked = trackedCpu([quota(['cpu'], scopes)], { ...subject, ...overrides });
    expect(tracked.requests).toBe(expected);
  });
});
