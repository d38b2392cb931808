/** The played kubelet, which the other tests rely on, against the real API server. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PODS } from '../../src/kube';
import type { JsonObject } from '../../src/kube';
import { RESOURCE_SHAPES, aContainer, aPod } from '../support/builders';
import { startControlPlane } from '../support/controlPlane';
import type { ControlPlane } from '../support/controlPlane';
import { eventually } from '../support/eventually';
import { KubeletPlayer } from '../support/kubelet';
import type { PodName } from '../support/kubelet';

let controlPlane: ControlPlane;
let kubelet: KubeletPlayer;

beforeAll(async () => {
  controlPlane = await startControlPlane();
  kubelet = await KubeletPlayer.start(controlPlane.client, {
    allocatable: { cpu: '4', memory: '8Gi', pods: '100' },
  });
});

afterAll(async () => {
  await controlPlane.stop();
});

async function create(name: string, resources: JsonObject): Promise<PodName> {
  const pod = aPod({ name, containers: [aContainer({ resources })] });
  await controlPlane.client.create({ ...PODS, namespace: 'default' }, pod);
  return { namespace: 'default', name };
}

async function createRunning(name: string, resources: JsonObject): Promise<PodName> {
  const pod = await create(name, resources);
  await kubelet.bind(pod);
  await kubelet.running(pod);
  return pod;
}

async function read(pod: PodName): Promise<JsonObject> {
  return controlPlane.client.get({ ...PODS, ...pod });
}

async function resize(pod: PodName, cpu: string): Promise<JsonObject> {
  const resources = { requests: { cpu }, limits: { cpu } };
  return controlPlane.client.patch(
    { ...PODS, ...pod, subresource: 'resize' },
    { type: 'strategic', body: { spec: { containers: [{ name: 'app', resources }] } } },
  );
}

describe('the played kubelet', () => {
  it('takes a pod from Pending to Running and Ready', async () => {
    const pod = await create('starts', RESOURCE_SHAPES['request and limit']);
    expect(await read(pod)).toMatchObject({ status: { phase: 'Pending' } });

    await kubelet.bind(pod);
    expect(await read(pod)).toMatchObject({
      spec: { nodeName: 'player' },
      status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
    });

    await kubelet.running(pod);
    expect(await read(pod)).toMatchObject({
      status: {
        phase: 'Running',
        observedGeneration: 1,
        containerStatuses: [{ name: 'app', started: false, ready: false, restartCount: 0 }],
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'PodScheduled', status: 'True' }),
          expect.objectContaining({ type: 'Ready', status: 'False' }),
        ]),
      },
    });

    await kubelet.ready(pod);
    expect(await read(pod)).toMatchObject({
      status: {
        containerStatuses: [{ started: true, ready: true }],
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'Ready', status: 'True' }),
        ]),
      },
    });

    await kubelet.notReady(pod);
    expect(await read(pod)).toMatchObject({
      status: {
        containerStatuses: [{ started: true, ready: false }],
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'Ready', status: 'False' }),
        ]),
      },
    });
  });

  it('says that a pod was scheduled when the test wants it to have been', async () => {
    const pod = await create('scheduled-earlier', {});

    await kubelet.bind(pod, { at: new Date('2026-01-02T03:04:05Z') });

    expect(await read(pod)).toMatchObject({
      status: {
        conditions: [{ type: 'PodScheduled', lastTransitionTime: '2026-01-02T03:04:05Z' }],
      },
    });
  });

  it('gives the containers the resized CPU when it accepts a resize', async () => {
    const pod = await createRunning('accepted', RESOURCE_SHAPES.Guaranteed);
    expect(await resize(pod, '300m')).toMatchObject({ metadata: { generation: 2 } });

    await kubelet.acceptResize(pod);

    expect(await read(pod)).toMatchObject({
      spec: { containers: [{ resources: { requests: { cpu: '300m' }, limits: { cpu: '300m' } } }] },
      status: {
        observedGeneration: 2,
        containerStatuses: [
          {
            restartCount: 0,
            allocatedResources: { cpu: '300m', memory: '64Mi' },
            resources: { requests: { cpu: '300m' }, limits: { cpu: '300m' } },
          },
        ],
      },
    });
  });

  it('leaves the CPU of the containers as it was when it defers a resize', async () => {
    const pod = await createRunning('deferred', RESOURCE_SHAPES.Guaranteed);
    await resize(pod, '700m');

    await kubelet.deferResize(pod);

    expect(await read(pod)).toMatchObject({
      status: {
        observedGeneration: 2,
        containerStatuses: [{ allocatedResources: { cpu: '500m' } }],
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'PodResizePending', reason: 'Deferred' }),
        ]),
      },
    });
  });

  it('takes the pending condition away when a deferred resize is accepted', async () => {
    const pod = await createRunning('deferred-then-accepted', RESOURCE_SHAPES.Guaranteed);
    await resize(pod, '700m');
    await kubelet.deferResize(pod);

    await kubelet.acceptResize(pod);

    expect(await read(pod)).toMatchObject({
      status: {
        containerStatuses: [{ allocatedResources: { cpu: '700m' } }],
        conditions: expect.not.arrayContaining([
          expect.objectContaining({ type: 'PodResizePending' }),
        ]),
      },
    });
  });

  it('calls a resize infeasible', async () => {
    const pod = await createRunning('infeasible', RESOURCE_SHAPES.Guaranteed);
    await resize(pod, '300m');

    await kubelet.infeasibleResize(pod);

    expect(await read(pod)).toMatchObject({
      status: {
        conditions: expect.arrayContaining([
          expect.objectContaining({
            type: 'PodResizePending',
            status: 'True',
            reason: 'Infeasible',
            observedGeneration: 2,
          }),
        ]),
      },
    });
  });

  it('restarts one container with the CPU that the node had given it', async () => {
    const pod = await createRunning('restarts', RESOURCE_SHAPES.Guaranteed);
    await kubelet.ready(pod);
    await resize(pod, '300m');

    await kubelet.restarted(pod, 'app');

    expect(await read(pod)).toMatchObject({
      status: {
        containerStatuses: [{ restartCount: 1, ready: false, allocatedResources: { cpu: '500m' } }],
      },
    });
  });

  it('tells sidecars from init containers that have finished', async () => {
    const name = 'with-init-containers';
    const pod = { namespace: 'default', name };
    const initContainers = [
      aContainer({ name: 'migrate' }),
      aContainer({ name: 'proxy', restartPolicy: 'Always' }),
    ];
    await controlPlane.client.create(
      { ...PODS, namespace: 'default' },
      aPod({ name, spec: { initContainers } }),
    );
    await kubelet.bind(pod);

    await kubelet.running(pod);

    expect(await read(pod)).toMatchObject({
      status: {
        initContainerStatuses: [
          { name: 'migrate', state: { terminated: { reason: 'Completed' } } },
          { name: 'proxy', state: { running: {} } },
        ],
      },
    });
  });

  it('has a node on which the API server refuses a resize that cannot fit', async () => {
    const pod = await createRunning('too-large', RESOURCE_SHAPES.Guaranteed);

    await expect(resize(pod, '5')).rejects.toMatchObject({
      failure: { kind: 'Forbidden', causes: [{ reason: 'NodeCapacity' }] },
    });
  });

  describe('in auto mode', () => {
    it('accepts a resize by itself', async () => {
      const auto = kubelet.auto();
      const pod = await createRunning('auto-accepted', RESOURCE_SHAPES.Guaranteed);

      await resize(pod, '300m');

      await eventually(async () => {
        expect(await read(pod)).toMatchObject({
          status: {
            observedGeneration: 2,
            containerStatuses: [{ allocatedResources: { cpu: '300m' } }],
          },
        });
      });
      await auto.stop();
    });

    it('answers as the test wants it to', async () => {
      const auto = kubelet.auto({ answer: () => 'Infeasible' });
      const pod = await createRunning('auto-infeasible', RESOURCE_SHAPES.Guaranteed);

      await resize(pod, '300m');

      await eventually(async () => {
        expect(await read(pod)).toMatchObject({
          status: {
            observedGeneration: 2,
            containerStatuses: [{ allocatedResources: { cpu: '500m' } }],
          },
        });
      });
      await auto.stop();
    });

    it('lets deleted pods go', async () => {
      const auto = kubelet.auto();
      const pod = await createRunning('auto-deleted', {});

      await controlPlane.client.delete({ ...PODS, ...pod }, { gracePeriodSeconds: 30 });

      await eventually(() =>
        expect(read(pod)).rejects.toMatchObject({ failure: { kind: 'NotFound' } }),
      );
      await auto.stop();
    });
  });
});
