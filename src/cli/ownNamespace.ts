/** The namespace that this process runs in, with its Lease, Secrets and Service. */
import type { KubeConfig } from '../kube';

/** Where neither POD_NAMESPACE nor the kubeconfig names one. */
const FALLBACK_NAMESPACE = 'default';

export interface OwnProcess {
  readonly kubeConfig: KubeConfig;
  readonly settings: { readonly namespace: string | undefined };
}

export function ownNamespace({ kubeConfig, settings }: OwnProcess): string {
  const context = kubeConfig.getContextObject(kubeConfig.getCurrentContext());
  return settings.namespace ?? context?.namespace ?? FALLBACK_NAMESPACE;
}
