import { describe, expect, it } from '@jest/globals';
import { parseAuditLog } from '../../support/auditLog';

/** As kube-apiserver 1.36 writes them. */
const RECEIVED = {
  kind: 'Event',
  apiVersion: 'audit.k8s.io/v1',
  level: 'RequestResponse',
  auditID: '26d3ce02',
  stage: 'RequestReceived',
  requestURI: '/api/v1/namespaces/demo/pods/app/resize',
  verb: 'patch',
  user: { username: 'system:serviceaccount:demo:controller', groups: ['system:authenticated'] },
  sourceIPs: ['127.0.0.1'],
  objectRef: {
    resource: 'pods',
    namespace: 'demo',
    name: 'app',
    apiVersion: 'v1',
    subresource: 'resize',
  },
  requestReceivedTimestamp: '2026-12-02T08:56:36.637446Z',
  stageTimestamp: '2026-12-02T08:56:36.637446Z',
};
const COMPLETE = {
  ...RECEIVED,
  stage: 'ResponseComplete',
  stageTimestamp: '2026-12-02T08:56:36.642548Z',
  responseStatus: { metadata: {}, code: 200 },
  requestObject: [{ op: 'test', path: '/metadata/uid', value: '1' }],
  responseObject: { kind: 'Pod' },
};

describe('the audit log', () => {
  it('tells who asked for what, and what was stored', () => {
    const { events } = parseAuditLog(`${JSON.stringify(COMPLETE)}\n`);
    expect(events).toEqual([
      {
        id: '26d3ce02',
        stage: 'Complete',
        receivedAt: Date.parse('2026-12-02T08:56:36.637Z'),
        at: Date.parse('2026-12-02T08:56:36.642Z'),
        verb: 'patch',
        user: 'system:serviceaccount:demo:controller',
        resource: 'pods',
        subresource: 'resize',
        namespace: 'demo',
        name: 'app',
        code: 200,
        request: COMPLETE.requestObject,
        response: COMPLETE.responseObject,
      },
    ]);
  });

  it('has requests that nobody has answered yet', () => {
    const { events } = parseAuditLog(`${JSON.stringify(RECEIVED)}\n`);
    expect(events).toMatchObject([{ stage: 'Received', code: 0, response: undefined }]);
  });

  it('has events without an object, and without a name', () => {
    const lines = [
      { ...RECEIVED, objectRef: undefined },
      { ...RECEIVED, objectRef: { resource: 'pods', namespace: 'demo', apiVersion: 'v1' } },
    ];
    const { events, tornLines } = parseAuditLog(
      lines.map((each) => JSON.stringify(each)).join('\n'),
    );
    expect(events).toMatchObject([
      { resource: '', namespace: '', name: '' },
      { resource: 'pods', namespace: 'demo', name: '' },
    ]);
    expect(tornLines).toBe(0);
  });

  it('counts lines that were cut short, and goes on after them', () => {
    const whole = JSON.stringify(COMPLETE);
    const { events, tornLines } = parseAuditLog(`${whole.slice(0, 100)}\n${whole}\n`);
    expect(events).toHaveLength(1);
    expect(tornLines).toBe(1);
  });
});
