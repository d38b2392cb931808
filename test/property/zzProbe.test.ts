import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileBoost, decideBoost, decideRevert, parseRecord, BOOST_KEY, readPod } from '../../src/boost-engine';
import { aptFor, boost, forgedRecord, marked, NOON, stored, resourcePolicy } from '../support/engineArbitraries';
import { applied, resourcesOf, raisedContainers } from '../support/engineLaws';
import { limitRanges, quotas, ruledPod } from '../support/namespaceArbitraries';
import { containersOf, simpleQos } from '../support/simplePod';
import { SETT } from './zzs';
const qos = (p: any) => simpleQos([...containersOf(p), ...containersOf(p, 'initContainers')]);
it('copied manifests', () => {
  const seen = new Map<string, number>(); const c = (k: string) => seen.set(k, (seen.get(k) ?? 0) + 1);
  const ex = new Map<string, any>();
  fc.assert(fc.property(ruledPod, boost, boost, resourcePolicy, limitRanges, quotas, fc.boolean(), forgedRecord, fc.boolean(), (pod, b1, b2, pol, lr, q, sameBoost, forged, useForged) => {
    const widen = (b: any) => ({ ...b, selector: {}, metadata: { ...b.metadata, name: 'b' } });
    const first = useForged ? undefined : decideBoost({ pod, namespace: 'default', boosts: [compileBoost(widen(b1))], now: NOON });
    if (first && first.kind !== 'Boost') return;
    const copy = first ? applied(pod, first.patch) : marked(pod, aptFor(pod, forged));
    const second = decideBoost({ pod: copy, namespace: 'default', boosts: [compileBoost(sameBoost ? widen(b1) : widen(b2))], limitRanges: lr, quotas: q, now: NOON + 1 });
    const after = applied(copy, second.patch);
    const key = `${useForged ? 'forged' : 'copied'} ${sameBoost ? 'same' : 'other'} ${second.kind}`;
    c(key);
    const st = stored(after);
    const d = decideRevert({ pod: st, boost: { kind: 'Absent', since: 0 }, now: NOON * 2, settings: SETT });
    if (d.kind !== 'Resize') { c(key + ' revert ' + d.kind); return; }
    const back = applied(st, d.patch);
    if (qos(back) !== qos(st)) { const kk = key + ' QOS'; c(kk); if (!ex.has(kk)|| JSON.stringify(ex.get(kk)).length>JSON.stringify([copy,b1,b2,lr,q]).length) ex.set(kk, [copy, sameBoost ? b1 : b2, lr, q, second.kind, (second as any).code, qos(pod), qos(st), qos(back)]); }
    if (containersOf(back).some((x) => (x.request ?? 0) > (x.limit ?? Infinity))) c(key + ' REQ>LIM');
    if (!useForged && sameBoost && JSON.stringify(resourcesOf(back)) !== JSON.stringify(resourcesOf(pod))) { c(key + ' DIFF'); ex.set(key+' DIFF',[pod,copy,b1,lr,q,back.spec]); }
    const again = decideBoost({ pod: after, namespace: 'default', boosts: [compileBoost(sameBoost ? widen(b1) : widen(b2))], limitRanges: lr, quotas: q, now: NOON + 2 });
    if (again.patch.length > 0) { c(key + ' NOTIDEMP'); ex.set('idemp', [after, sameBoost ? b1 : b2, lr, q, again.patch]); }
    if (raisedContainers(st, back).length) c(key + ' RAISED');
  }), { numRuns: 20000 });
  console.log([...seen], JSON.stringify([...ex], null, 0));
});
