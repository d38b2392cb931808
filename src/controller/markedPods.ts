/** Finds the pods that carry the record of a boost, by their metadata alone. */
import { BOOST_KEY, readMetadata } from '../boost-engine';
import { PODS } from '../kube';
import type { KubeClient } from '../kube';
import { nameOf } from './reconcileKey';
import type { ObjectName } from './reconcileKey';

export interface MarkedPod extends ObjectName {
  /** Without the label a pod is in no watch. */
  readonly isLabelled: boolean;
}

/** As client-go: https://github.com/kubernetes/client-go/blob/v0.36.3/tools/pager/pager.go */
const PAGE_SIZE = 500;
/** A page from a server that has to read etcd. */
const PAGE_TIMEOUT_MS = 30_000;

/**
 * Reads the metadata of every pod of the cluster, page by page, and yields those of each page that
 * have a record on them and are not about to go.
 *
 * @throws ApiError; Gone where so much has changed meanwhile that the list has to begin anew
 */
export async function* markedPods(
  client: Pick<KubeClient, 'list'>,
  signal: AbortSignal,
): AsyncGenerator<readonly MarkedPod[], void> {
  let token: string | undefined;
  do {
    const page = await client.list(PODS, {
      parts: 'Metadata',
      limit: PAGE_SIZE,
      timeoutMs: PAGE_TIMEOUT_MS,
      signal,
      ...(token === undefined ? {} : { continue: token }),
    });
    yield page.items.flatMap((pod) => {
      const { annotations, labels, isTerminating } = readMetadata(pod);
      return isTerminating || annotations?.has(BOOST_KEY) !== true
        ? []
        : [{ ...nameOf(pod), isLabelled: labels?.has(BOOST_KEY) === true }];
    });
    token = page.continue;
  } while (token !== undefined);
}
