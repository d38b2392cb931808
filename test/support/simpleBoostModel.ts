/**
 * The rules of a boost at creation, written a second time: plain numbers, manifests instead of
 * compiled boosts, no patch and no record. It shares no code with the engine.
 */
import type { JsonObject } from '../../src/kube';
import { listAt, objectAt, textsAt } from './objectAt';
import { containersOf, simpleLimitRangeAllows, simpleQos, simpleTracked } from './simplePod';
import type { SimpleContainer } from './simplePod';

export type SimpleAnswer =
  | {
      readonly kind: 'Boost';
      readonly boost: string;
      readonly containers: readonly SimpleContainer[];
    }
  | { readonly kind: 'Skip'; readonly code: string };

interface SimpleSituation {
  readonly pod: JsonObject;
  readonly boosts: readonly JsonObject[];
  readonly limitRanges: readonly JsonObject[];
  readonly quotas: readonly JsonObject[];
}

export function simpleBoost({ pod, boosts, limitRanges, quotas }: SimpleSituation): SimpleAnswer {
  const boost = winner(pod, boosts);
  if (boost === undefined) return { kind: 'Skip', code: 'NoBoostMatches' };
  const code = podCode(pod);
  if (code !== undefined) return { kind: 'Skip', code };
  return boostOneByOne(boost, { pod, boosts, limitRanges, quotas });
}

function boostOneByOne(boost: JsonObject, situation: SimpleSituation): SimpleAnswer {
  const { pod, limitRanges, quotas } = situation;
  const initContainers = containersOf(pod, 'initContainers');
  const tracked = simpleTracked(quotas, pod);
  let containers = containersOf(pod);
  const qos = simpleQos([...containers, ...initContainers]);
  const isRefusedAnyway = !simpleLimitRangeAllows(limitRanges, containers, initContainers);
  const codes: string[] = [];
  for (const container of containers) {
    const trials = waysFor(boost, container, limitRanges).map((wanted) => {
      const held = withHeld(container, wanted, tracked);
      const next = containers.map((other) => (other.name === container.name ? held : other));
      const isHeld = held.request !== wanted.request || held.limit !== wanted.limit;
      const trial = {
        changesQos: simpleQos([...next, ...initContainers]) !== qos,
        isRefused: isRefusedAnyway || !simpleLimitRangeAllows(limitRanges, next, initContainers),
      };
      const code = containerCode(container, held, trial);
      return { next, code: isHeld && QUOTA_EXPLAINS.has(code ?? '') ? 'QuotaPresent' : code };
    });
    const possible = trials.find(({ code }) => code === undefined);
    if (possible === undefined) codes.push(trials.at(-1)?.code ?? 'NoPolicy');
    else containers = possible.next;
  }
  if (codes.length < containers.length) return { kind: 'Boost', boost: nameOf(boost), containers };
  return { kind: 'Skip', code: codes.find((each) => each !== 'NoPolicy') ?? 'NoPolicy' };
}

/** What the boost would make of the container, the best first; nothing without a policy. */
function waysFor(
  boost: JsonObject,
  container: SimpleContainer,
  limitRanges: readonly JsonObject[],
): readonly SimpleContainer[] {
  const policy = policyOf(boost, container.name);
  if (policy === undefined) return [];
  const wanted = raised(container, policy);
  const { cpuLimits } = objectAt(objectAt(boost, 'spec'), 'resourcePolicy');
  if (cpuLimits === 'Keep') return [{ ...wanted, limit: container.limit }];
  const items = limitRanges.flatMap((range) => listAt(objectAt(range, 'spec'), 'limits'));
  const givesLimit = items.some(
    (item) => item.type === 'Container' && objectAt(item, 'default').cpu !== undefined,
  );
  const canGo = cpuLimits === 'Remove' && !givesLimit && container.request !== undefined;
  return canGo && Boolean(container.limit) ? [{ ...wanted, limit: undefined }, wanted] : [wanted];
}

/** What a quota counts stays. */
function withHeld(
  before: SimpleContainer,
  wanted: SimpleContainer,
  tracked: ReturnType<typeof simpleTracked>,
): SimpleContainer {
  return {
    ...wanted,
    request: tracked.requests ? before.request : wanted.request,
    limit: tracked.limits ? before.limit : wanted.limit,
  };
}

/** What would not have happened without a value that a quota holds. */
const QUOTA_EXPLAINS = new Set(['NothingToRaise', 'RequestAboveLimit', 'WouldChangeQosClass']);

function containerCode(
  before: SimpleContainer,
  after: SimpleContainer,
  trial: { readonly changesQos: boolean; readonly isRefused: boolean },
): string | undefined {
  if (before.request === undefined && before.limit === undefined) return 'NoCpu';
  if (before.restartsOnResize) return 'RestartsOnResize';
  if (before.request === after.request && before.limit === after.limit) return 'NothingToRaise';
  if (after.limit !== undefined && (after.request ?? 0) > after.limit) return 'RequestAboveLimit';
  if (trial.changesQos) return 'WouldChangeQosClass';
  return trial.isRefused ? 'LimitRangeExceeded' : undefined;
}

function podCode(pod: JsonObject): string | undefined {
  const spec = objectAt(pod, 'spec');
  const os = [objectAt(spec, 'os').name, objectAt(spec, 'nodeSelector')['kubernetes.io/os']];
  if (os.includes('windows')) return 'WindowsPod';
  if (spec.nodeName !== undefined && spec.nodeName !== '') return 'NodeNameSet';
  if (Object.keys(objectAt(spec, 'resources')).length > 0) return 'PodLevelResources';
  if (listAt(spec, 'resourceClaims').length > 0) return 'ResourceClaims';
  return undefined;
}

function nameOf(boost: JsonObject): string {
  return String(objectAt(boost, 'metadata').name);
}

function winner(pod: JsonObject, boosts: readonly JsonObject[]): JsonObject | undefined {
  const labels = objectAt(objectAt(pod, 'metadata'), 'labels');
  const age = (boost: JsonObject) => String(objectAt(boost, 'metadata').creationTimestamp);
  return boosts
    .filter((boost) => selects(objectAt(boost, 'selector'), labels))
    .sort((a, b) => (`${age(a)} ${nameOf(a)}` < `${age(b)} ${nameOf(b)}` ? -1 : 1))[0];
}

export function selects(selector: JsonObject, labels: JsonObject): boolean {
  const wanted = objectAt(selector, 'matchLabels');
  return (
    Object.keys(wanted).every((key) => Object.hasOwn(labels, key) && labels[key] === wanted[key]) &&
    listAt(selector, 'matchExpressions').every((expression) => {
      const key = String(expression.key);
      const has = Object.hasOwn(labels, key);
      const isListed = has && textsAt(expression, 'values').includes(String(labels[key]));
      const answers = { In: isListed, NotIn: !isListed, Exists: has, DoesNotExist: !has };
      return new Map(Object.entries(answers)).get(String(expression.operator));
    })
  );
}

/** What the boost makes of a container by itself, whatever the pod and the namespace say. */
export function simpleRaise(boost: JsonObject, container: SimpleContainer): SimpleContainer {
  const policy = policyOf(boost, container.name);
  return policy === undefined ? container : raised(container, policy);
}

function policyOf(boost: JsonObject, container: string): JsonObject | undefined {
  const policies = objectAt(objectAt(boost, 'spec'), 'resourcePolicy');
  return listAt(policies, 'containerPolicies').find((policy) => {
    const { type, value } = objectAt(policy, 'matchContainers');
    return type === 'RegexName'
      ? new RegExp(String(value)).test(container)
      : (policy.containerName ?? value) === container;
  });
}

function raised(container: SimpleContainer, policy: JsonObject): SimpleContainer {
  const fixed = objectAt(policy, 'fixedResources');
  const percent = Number(objectAt(policy, 'percentageIncrease').value);
  const raise = (present: number | undefined, key: 'requests' | 'limits') => {
    if (present === undefined) return undefined;
    if (policy.fixedResources === undefined) return Math.ceil((present * (100 + percent)) / 100);
    const text = typeof fixed[key] === 'string' ? fixed[key] : '0';
    return Math.max(
      present,
      text.endsWith('m') ? parseInt(text, 10) : Math.round(Number(text) * 1_000),
    );
  };
  return {
    ...container,
    request: raise(container.request, 'requests'),
    limit: container.limit === 0 ? 0 : raise(container.limit, 'limits'),
  };
}
