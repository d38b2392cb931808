/** The objects of a rendered release, found by what they are. */
import type { JsonObject } from '../../src/kube';
import { listAt, objectAt, textAt } from './objectAt';

export type Component = 'admission' | 'controller';
export const COMPONENTS: readonly Component[] = ['admission', 'controller'];

type Objects = readonly JsonObject[];

export function ofKind(objects: Objects, kind: string): Objects {
  return objects.filter((object) => object.kind === kind);
}

export function nameOf(object: JsonObject): string {
  return textAt(objectAt(object, 'metadata'), 'name');
}

/** What lies that deep; an empty object where nothing does. */
export function below(object: JsonObject, ...path: readonly string[]): JsonObject {
  return path.reduce(objectAt, object);
}

/** The one of the kind; throws unless there is just one. */
export function onlyOne(objects: Objects, kind: string): JsonObject {
  const [one, ...others] = ofKind(objects, kind);
  if (one === undefined || others.length > 0) {
    throw new Error(`${others.length + (one === undefined ? 0 : 1)} objects of kind ${kind}`);
  }
  return one;
}

export function deploymentOf(objects: Objects, component: Component): JsonObject {
  return onlyOne(
    objects.filter((object) => nameOf(object).endsWith(`-${component}`)),
    'Deployment',
  );
}

/** Of its pods, or the pod itself. */
export function podOf(workload: JsonObject): JsonObject {
  return workload.kind === 'Pod' ? workload : below(workload, 'spec', 'template');
}

/** The one container of the pods. */
export function containerOf(workload: JsonObject): JsonObject {
  const [container = {}] = listAt(below(podOf(workload), 'spec'), 'containers');
  return container;
}

export function environmentOf(workload: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listAt(containerOf(workload), 'env').map((variable) => [
      textAt(variable, 'name'),
      textAt(variable, 'value'),
    ]),
  );
}
