/** The program that `npm run demo -- --node` starts: a Spring Boot service, or one of Node. */
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { withLock } from './lock.mjs';
import { Failure, isExecutable, must, onPath, root, run, say, withTicks } from './processes.mjs';

const sources = join(root, 'demo', 'node');
const mkimage = join(root, 'test', 'cluster', 'mkimage.py');
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'startup-cpu-boost');
// Maven compiles for this Java, see the pom.xml.
const oldestJava = 17;
// All of Java SE, and what Spring and Tomcat look for beside it.
const modules = 'java.se,jdk.crypto.ec,jdk.jfr,jdk.management,jdk.unsupported,jdk.zipfs';

export const programs = ['spring-boot', 'node'];

/**
 * The image of the program in a tar, built once into the cache. Where no program is asked for, it is
 * the one of Node where this machine cannot build the other, and says so.
 * @returns {Promise<{tar: string, image: string, title: string, readyPath: string, memory: string}>}
 */
export async function ensureProgram(asked, node) {
  if (asked === 'node') return nodeProgram(node);
  const java = await findJava();
  if (java.kind === 'Found') {
    try {
      return await springBootProgram(java);
    } catch (error) {
      if (asked !== undefined || !(error instanceof Failure)) throw error;
      say(`the Spring Boot application could not be built: ${error.message}`);
    }
  } else if (asked !== undefined) {
    throw new Failure(java.reason);
  } else {
    say(`no Spring Boot application: ${java.reason}`);
  }
  say('a Node program with a heavy import is started in its place');
  return nodeProgram(node);
}

async function springBootProgram({ home, version }) {
  const project = join(sources, 'spring-boot');
  const image = 'local/spring-boot:demo';
  const tar = await cached(
    'spring-boot',
    [version, ...textsUnder(project)],
    async (folder, out) => {
      say('building a Spring Boot application and a Java runtime (once; about 1 minute)...');
      const app = join(folder, 'application');
      const runtime = join(folder, 'java');
      cpSync(project, app, { recursive: true });
      const env = { JAVA_HOME: home };
      await withTicks(
        () => 'mvn package',
        () => must('mvn', ['-q', '-B', 'package'], { capture: true, cwd: app, env }),
      );
      await must(
        join(home, 'bin', 'jlink'),
        ['--add-modules', modules, '--no-header-files', '--no-man-pages', '--output', runtime],
        { capture: true },
      );
      // The archive of the JDK's own classes, which every Java that people install comes with.
      await must(join(runtime, 'bin', 'java'), ['-Xshare:dump'], { capture: true });
      await must(mkimage, [
        out,
        `--name=${image}`,
        `--tree=${runtime}:/opt/java`,
        ...(await librariesOutside(runtime)).map((library) => `--file=${library}`),
        `--file=${join(app, 'target', 'shop.jar')}:/app/shop.jar`,
        '--user=65532',
        ...['--', '/opt/java/bin/java', '-jar', '/app/shop.jar'],
      ]);
    },
  );
  const [, springBoot] = /<version>([\d.]+)<\/version>/.exec(
    readFileSync(join(project, 'pom.xml'), 'utf8'),
  );
  const title = `Spring Boot ${springBoot} with JPA and H2 on Java ${version}`;
  return { tar, image, title, readyPath: '/actuator/health/readiness', memory: '512Mi' };
}

async function nodeProgram(node) {
  const program = join(sources, 'heavy-import', 'server.mjs');
  const compiler = join(root, 'node_modules', 'typescript');
  const { version } = JSON.parse(readFileSync(join(compiler, 'package.json'), 'utf8'));
  const image = 'local/heavy-import:demo';
  const key = [node, version, readFileSync(program, 'utf8')];
  const tar = await cached('heavy-import', key, (_, out) =>
    must(mkimage, [
      out,
      `--name=${image}`,
      `--bin=${node}:/usr/bin/node`,
      `--file=${join(compiler, 'package.json')}:/app/node_modules/typescript/package.json`,
      `--tree=${join(compiler, 'lib')}:/app/node_modules/typescript/lib`,
      `--file=${program}:/app/server.mjs`,
      '--user=65532',
      ...['--', '/usr/bin/node', '/app/server.mjs'],
    ]),
  );
  const title = `a Node program that warms up the TypeScript compiler ${version}`;
  return { tar, image, title, readyPath: '/ready', memory: '512Mi' };
}

/** The JDK of JAVA_HOME, or of the PATH, or what to install. */
async function findJava() {
  const absent = (reason) => ({ kind: 'Absent', reason });
  const install = `on Debian: apt-get install maven openjdk-${oldestJava}-jdk-headless`;
  if (onPath('mvn') === undefined) return absent(`Maven (mvn) is missing; ${install}`);
  const compiler = onPath('javac');
  const home =
    process.env.JAVA_HOME || (compiler && dirname(dirname(realpathSync(compiler)))) || '';
  const missing = ['java', 'javac', 'jlink'].filter(
    (each) => !isExecutable(join(home, 'bin', each)),
  );
  if (missing.length > 0) return absent(`no JDK with ${missing.join(', ')}; ${install}`);
  const { output } = await run(join(home, 'bin', 'javac'), ['-version'], { capture: true });
  const version = /javac ((\d+)\S*)/.exec(output);
  if (version === null || Number(version[2]) < oldestJava) {
    return absent(
      `Java ${oldestJava} or newer is needed, and here is ${output.trim()}; ${install}`,
    );
  }
  return { kind: 'Found', home, version: version[1] };
}

/** The C library and the like: what the runtime's own programs and libraries are linked with. */
async function librariesOutside(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.so'));
  const { output } = await run(
    'ldd',
    ['bin/java', ...names].map((name) => join(folder, name)),
    { capture: true },
  );
  const paths = [...output.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path);
  return [...new Set(paths)].filter((path) => !path.startsWith(folder));
}

/** The tar of that name and key; `build(folder, out)` makes it at `out`, with a folder to work in. */
async function cached(name, key, build) {
  const hash = createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 12);
  const tar = join(cache, 'demo', `${name}-${hash}.tar`);
  if (existsSync(tar)) return tar;
  const folder = join(cache, 'demo', `.new-${process.pid}`);
  const clean = () => rmSync(folder, { recursive: true, force: true });
  const waiting = (pid) => say(`process ${pid} is building the program; waiting for it...`);
  await withLock(join(cache, 'demo', '.lock'), waiting, async () => {
    if (existsSync(tar)) return;
    process.on('exit', clean);
    try {
      mkdirSync(folder, { recursive: true });
      await build(folder, join(folder, 'image.tar'));
      renameSync(join(folder, 'image.tar'), tar);
    } finally {
      process.off('exit', clean);
      clean();
    }
  });
  return tar;
}

function textsUnder(folder) {
  return readdirSync(folder, { recursive: true })
    .sort()
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'utf8'));
}
