/** The one Lease of the controllers: they elect by it, and admission sees by it that one is there. */
import { ownNamespace } from './ownNamespace';
import type { OwnProcess } from './ownNamespace';

export function controllerLease(process: OwnProcess): {
  readonly namespace: string;
  readonly name: string;
} {
  return { namespace: ownNamespace(process), name: 'startup-cpu-boost-controller' };
}
