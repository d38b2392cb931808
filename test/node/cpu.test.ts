/** What a boost does to containers that really run: their cgroups, and nothing else of them. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ENDED_KEY } from '../../src/boost-engine';
import { STARTUP_CPU_BOOSTS } from '../../src/kube';
import { aBoost } from '../support/builders';
import type { ResourceLists } from '../support/builders';
import { eventually } from '../support/eventually';
import { weightsOf } from '../support/node/cgroup';
import type { CgroupCpu } from '../support/node/cgroup';
import { installChart, uninstallChart } from '../support/node/chart';
import { NODE_PATIENCE_MS, NodeCluster } from '../support/node/cluster';
import { StartingPod, resourcesOf, statusOf } from '../support/node/startingPod';

jest.setTimeout(4 * NODE_PATIENCE_MS);
