/** The record of a boost: the annotation on the pod from which any process can give the CPU back. */
import { fieldsOf, integerOf, isObject, textOf } from './json';
import { cpuResources } from './pod';
import type { CpuResources } from './pod';
import { parseQuantity, storedCpu } from './quantity';
import { RAISE_CAUSE_CODES } from './reasons';
import type { RaiseCause } from './reasons';

export const RECORD_STATES = ['Active', 'Pending', 'Reverted', 'Infeasible'] as const;

/**
 * - `Active`: boosted, or on the way back.
 * - `Pending`: to be raised in place once the pod is on a node; `reason` says why so late.
 * - `Infeasible`: the node has no room for the raise, which is on the way back. Also written by
 *   google/kube-startup-cpu-boost, without a `reason`.
 * - `Reverted`: written by google/kube-startup-cpu-boost.
 *
 * Whether CPU has to go back is judged by comparing values; that it may still be raised is said by
 * `Pending` alone.
 */
export type RecordState = (typeof RECORD_STATES)[number];

export interface ContainerRecord {
  /** What the container had before the boost. */
  readonly original: CpuResources;
  readonly boosted: BoostedCpu;
}

/** What the boost set; a key that it left alone is absent. */
export interface BoostedCpu {
  readonly request?: string;
  /** Null where the boost removed the limit. */
  readonly limit?: string | null;
}

/**
 * Whether a limit that a boost removed is to come back: not one of zero, which means no limit at all,
 * and none beside no request, of which the API server would make a request as well.
 *
 * A record that tells the originals only was written by google/kube-startup-cpu-boost, which removes
 * limits too.
 */
export function lacksLimit(cpu: CpuResources, { original, boosted }: ContainerRecord): boolean {
  if (cpu.limit !== undefined || cpu.request === undefined) return false;
  const isRemoved = boosted.limit === null || !tellsBoosted(boosted);
  return isRemoved && (parseQuantity(original.limit) ?? 0n) > 0n;
}

export interface BoostRecord {
  readonly state: RecordState;
  /** When the boost was decided, RFC 3339. */
  readonly timestamp: string | undefined;
  /** Uid and generation of the boost that was applied; they explain, nothing is decided on them. */
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  /** Why the boost was not given, or not left, to the pod at its creation; absent where it was. */
  readonly reason?: RaiseCause;
  readonly containers: ReadonlyMap<string, ContainerRecord>;
}

export type ParsedRecord =
  | { readonly kind: 'Record'; readonly record: BoostRecord }
  | { readonly kind: 'Unreadable'; readonly why: string };

/**
 * Longest record that is read. A container takes at most 4 entries of about 90 characters, so this
 * is room for 180 containers; all annotations of a pod together may have 256 KiB.
 */
export const MAX_RECORD_LENGTH = 64 * 1024;

/** Longest record that is written: a later state and its reason must still fit. */
export const MAX_WRITTEN_LENGTH = MAX_RECORD_LENGTH - 64;

/** The four maps of a record, each from container name to CPU quantity, or to null for a removed limit. */
const MAPS = [
  'initCPURequests',
  'initCPULimits',
  'boostedCPURequests',
  'boostedCPULimits',
] as const;
type MapName = (typeof MAPS)[number];

export function parseRecord(text: string): ParsedRecord {
  if (text.length > MAX_RECORD_LENGTH) {
    return unreadable(`longer than ${MAX_RECORD_LENGTH} characters`);
  }
  const json = parseJson(text);
  if (!isObject(json)) return unreadable('not a JSON object');
  const fields = fieldsOf(json);
  const state = RECORD_STATES.find((known) => known === (fields.get('state') ?? 'Active'));
  if (state === undefined) return unreadable(`state is not one of ${RECORD_STATES.join(', ')}`);
  const maps = new Map<MapName, ReadonlyMap<string, string | null>>();
  for (const name of MAPS) {
    const quantities = readQuantities(name, fields.get(name));
    if (quantities === undefined) return unreadable(`${name} is not a map of CPU quantities`);
    maps.set(name, quantities);
  }
  const reason = RAISE_CAUSE_CODES.find((cause) => cause === fields.get('reason'));
  return {
    kind: 'Record',
    record: {
      state,
      timestamp: textOf(fields.get('timestamp')),
      uid: textOf(fields.get('uid')),
      generation: integerOf(fields.get('generation')),
      ...(reason === undefined ? {} : { reason }),
      containers: joinMaps(maps),
    },
  };
}

/** Writes a record; keys without a value are left out, as google/kube-startup-cpu-boost does. */
export function formatRecord(record: BoostRecord): string {
  const containers = [...record.containers];
  const mapOf = (pick: (container: ContainerRecord) => string | null | undefined) => {
    const entries = containers.flatMap(([name, container]) => {
      const text = pick(container);
      return text === undefined ? [] : [[name, text] as const];
    });
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  };
  return JSON.stringify({
    state: record.state,
    timestamp: record.timestamp,
    initCPURequests: mapOf((container) => container.original.request),
    initCPULimits: mapOf((container) => container.original.limit),
    boostedCPURequests: mapOf((container) => container.boosted.request),
    boostedCPULimits: mapOf((container) => container.boosted.limit),
    uid: record.uid,
    generation: record.generation,
    reason: record.reason,
  });
}

/**
 * Whether the record tells what the boost set. One without was written by
 * google/kube-startup-cpu-boost, which keeps the originals only.
 */
export function tellsBoostedValues(record: BoostRecord): boolean {
  return [...record.containers.values()].some(({ boosted }) => tellsBoosted(boosted));
}

export function tellsBoosted({ request, limit }: BoostedCpu): boolean {
  return request !== undefined || limit !== undefined;
}

function unreadable(why: string): ParsedRecord {
  return { kind: 'Unreadable', why };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readQuantities(
  name: MapName,
  value: unknown,
): ReadonlyMap<string, string | null> | undefined {
  if (value === undefined || value === null) return new Map();
  if (!isObject(value)) return undefined;
  const quantities = new Map<string, string | null>();
  for (const [container, text] of fieldsOf(value)) {
    if (text === null && name === 'boostedCPULimits') {
      quantities.set(container, text);
      continue;
    }
    const quantity = parseQuantity(text);
    if (typeof text !== 'string' || quantity === undefined || quantity < 0n) return undefined;
    // A forged original may be finer than any pod's CPU can be, and would never be reached.
    quantities.set(container, storedCpu(text, quantity));
  }
  return quantities;
}

function joinMaps(
  maps: ReadonlyMap<MapName, ReadonlyMap<string, string | null>>,
): ReadonlyMap<string, ContainerRecord> {
  const names = new Set([...maps.values()].flatMap((quantities) => [...quantities.keys()]));
  const at = (map: MapName, name: string) => maps.get(map)?.get(name) ?? undefined;
  const isRemoved = (name: string) => maps.get('boostedCPULimits')?.get(name) === null;
  return new Map(
    [...names].map((name) => [
      name,
      {
        original: cpuResources(at('initCPURequests', name), at('initCPULimits', name)),
        boosted: {
          ...cpuResources(at('boostedCPURequests', name), at('boostedCPULimits', name)),
          ...(isRemoved(name) ? { limit: null } : {}),
        },
      },
    ]),
  );
}
