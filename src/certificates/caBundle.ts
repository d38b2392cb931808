/** The CA bundles of the webhook configurations: whom the API servers trust. */
import { fieldsOf, itemsOf, jsonPointer, textOf } from '../boost-engine';
import type { JsonPatch } from '../boost-engine';
import type { JsonObject } from '../kube';
import type { AuthorityCertificate } from './authority';

export interface WebhookBundle {
  readonly webhook: string;
  /** PEM as it stands there, '' where there is none. */
  readonly text: string;
}

/** Far above any bundle that works; what is longer cannot be ours and need not be read. */
const MAX_BUNDLE_LENGTH = 256 * 2 ** 10;

/** One for each webhook, in their order. */
export function readBundles(configuration: JsonObject | undefined): readonly WebhookBundle[] {
  return itemsOf(configuration?.webhooks).map((item) => {
    const webhook = fieldsOf(item);
    const encoded = textOf(fieldsOf(webhook.get('clientConfig')).get('caBundle')) ?? '';
    const text =
      encoded.length > MAX_BUNDLE_LENGTH ? '' : Buffer.from(encoded, 'base64').toString();
    return { webhook: textOf(webhook.get('name')) ?? '', text };
  });
}

/** The same text for the same authorities, whatever their order. */
export function bundleText(authorities: readonly AuthorityCertificate[]): string {
  const byFingerprint = new Map(authorities.map((each) => [each.fingerprint, each]));
  return [...byFingerprint.values()]
    .sort((a, b) => a.notBefore - b.notBefore || (a.fingerprint < b.fingerprint ? -1 : 1))
    .map(({ pem }) => pem)
    .join('');
}

/**
 * Puts the bundle where another stands; does not apply once somebody else has written the
 * configuration, so that an old plan can never take a new authority out again.
 */
export function bundlePatch(
  bundles: readonly WebhookBundle[],
  text: string,
  resourceVersion: string,
): JsonPatch {
  const value = Buffer.from(text).toString('base64');
  return [
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    ...bundles.flatMap((bundle, index): JsonPatch => {
      if (bundle.text === text) return [];
      return [
        { op: 'test', path: jsonPointer('webhooks', index, 'name'), value: bundle.webhook },
        { op: 'add', path: jsonPointer('webhooks', index, 'clientConfig', 'caBundle'), value },
      ];
    }),
  ];
}
