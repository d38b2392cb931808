import { describe, expect, it } from '@jest/globals';
import { PODS, STARTUP_CPU_BOOSTS, describeRef } from '../../../src/kube';
import { collectionPath, groupVersionPath, objectPath } from '../../../src/kube/resourceRef';

describe('the path of a resource', () => {
  it('of the core group is under /api, of any other under /apis', () => {
    expect(groupVersionPath(PODS)).toBe('/api/v1');
    expect(groupVersionPath(STARTUP_CPU_BOOSTS)).toBe('/apis/autoscaling.x-k8s.io/v1alpha1');
  });

  it('has the namespace only where one is given', () => {
    expect(collectionPath(PODS)).toBe('/api/v1/pods');
    expect(collectionPath({ ...PODS, namespace: 'shop' })).toBe('/api/v1/namespaces/shop/pods');
  });

  it('ends with the name and the subresource', () => {
    expect(objectPath({ ...PODS, namespace: 'shop', name: 'web-0', subresource: 'resize' })).toBe(
      '/api/v1/namespaces/shop/pods/web-0/resize',
    );
  });

  it('keeps a name with odd characters inside its segment', () => {
    expect(objectPath({ ...PODS, namespace: 'a/b', name: 'c?d#e' })).toBe(
      '/api/v1/namespaces/a%2Fb/pods/c%3Fd%23e',
    );
  });

  it.each(['', '.', '..'])('refuses %j as a name, since it leads to another resource', (name) => {
    expect(() => objectPath({ ...PODS, namespace: 'shop', name })).toThrow('name must be a name');
    expect(() => objectPath({ ...PODS, namespace: name, name: 'x' })).toThrow('namespace must');
  });
});

describe('the description of a resource', () => {
  it('reads like the words of kubectl', () => {
    expect(describeRef(PODS)).toBe('pods');
    expect(describeRef({ ...STARTUP_CPU_BOOSTS, namespace: 'shop', name: 'jvm' })).toBe(
      'startupcpuboosts.autoscaling.x-k8s.io shop/jvm',
    );
    expect(describeRef({ ...PODS, namespace: 'shop', name: 'web', subresource: 'resize' })).toBe(
      'pods/resize shop/web',
    );
  });
});
