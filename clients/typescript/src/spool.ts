/**
 * The spool: files with the traces that ingest has not answered for yet. SPOOL/AGENT/OWNER/N.jsonl. A
 * process writes only in its own directory, and takes over the files of an owner that is dead by
 * renaming them, which succeeds for one process only. docs/CLIENTS.md describes the directory,
 * which recorders in all languages share.
 */
import { createHash, randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { homedir, hostname } from "node:os";
import { join, resolve } from "node:path";

const FOREIGN_MILLISECONDS = 600_000; // after which an owner on another host that gives no sign counts as dead

export function defaultRoot(): string {
  const state = process.env["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return process.env["PLUMBLINE_SPOOL"] || join(state, "plumbline", "spool");
}

/** Returns the agent's id as a name: other bytes than letters, digits, _ and - become =XX. */
export function directoryOf(agentId: string): string {
  const name = [...Buffer.from(agentId)]
    .map((b) => (/[A-Za-z0-9_-]/.test(String.fromCharCode(b)) ? String.fromCharCode(b) : `=${b.toString(16).toUpperCase().padStart(2, "0")}`))
    .join("");
  if (name.length <= 200) return name;
  return `${name.slice(0, 150)}=${createHash("sha256").update(agentId).digest("hex").slice(0, 32)}`;
}

/** Some lines in the order of recording: a file of the spool, or memory where there is none. */
export class Segment {
  items: string[] | undefined = []; // undefined: only in the file
  size = 0;
  traces = 0; // of this process
  adopted = false;
  readonly born = performance.now();
  #synced = false;
  #file: number | undefined;

  constructor(public path: string | undefined) {}

  static async ofFile(path: string): Promise<Segment> {
    const segment = new Segment(path);
    segment.size = (await fs.promises.stat(path)).size;
    segment.items = undefined;
    segment.adopted = true;
    return segment;
  }

  /** Adds lines. If they cannot be written, it rejects, and the segment has what it had before. */
  async append(lines: string[]): Promise<void> {
    const data = bytesOf(lines);
    if (this.path !== undefined) {
      try {
        const path = this.path;
        this.#file ??= await new Promise<number>((resolve, reject) =>
          fs.open(path, "ax", 0o600, (error, file) => (error ? reject(error) : resolve(file))));
        for (let done = 0; done < data.length; ) done += await this.#write(data.subarray(done));
      } catch (error) {
        this.#takeBack();
        throw error;
      }
    }
    this.#add(lines, data);
  }

  #write(data: Buffer): Promise<number> {
    return new Promise((resolve, reject) =>
      fs.write(this.#file as number, data, (error, written) => (error ? reject(error) : resolve(written))));
  }

  /** Appends before it returns, for a caller that must not continue earlier. */
  appendSync(lines: string[], sync: boolean): void {
    const data = bytesOf(lines);
    if (this.path !== undefined) {
      try {
        this.#file ??= fs.openSync(this.path, "ax", 0o600);
        for (let done = 0; done < data.length; ) done += fs.writeSync(this.#file, data, done);
        if (sync) {
          fs.fsyncSync(this.#file);
          syncDirectory(join(this.path, ".."));
        }
      } catch (error) {
        this.#takeBack();
        throw error;
      }
    }
    this.#add(lines, data);
  }

  #add(lines: string[], data: Buffer): void {
    this.items?.push(...lines);
    this.size += data.length;
  }

  /** Removes what a write that failed has left. If that fails, too, lines are sent twice, which is harmless. */
  #takeBack(): void {
    try {
      if (this.size > 0 && this.#file !== undefined) return fs.ftruncateSync(this.#file, this.size);
      this.#closeFile();
      fs.unlinkSync(this.path ?? "");
    } catch {
      // A duplicate.
    }
  }

  /** Ends the writing. The lines leave memory if the file has them. */
  close(): void {
    if (this.#file === undefined) return;
    let here = false;
    try {
      here = fs.statSync(this.path ?? "").ino === fs.fstatSync(this.#file).ino;
    } catch {
      // Another process took this one for dead, perhaps before the last lines.
    }
    if (this.#closeFile() && here) this.items = undefined;
    else this.path = undefined;
  }

  /** Returns whether the file has been closed without an error: some file systems say only then that there is no space. */
  #closeFile(): boolean {
    const file = this.#file;
    this.#file = undefined;
    try {
      if (file !== undefined) fs.closeSync(file);
    } catch {
      return false;
    }
    return true;
  }

  /** Makes a closed file survive a loss of power. */
  async sync(): Promise<void> {
    if (this.#synced || this.path === undefined) return;
    for (const path of [this.path, join(this.path, "..")]) {
      const file = await fs.promises.open(path, "r");
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    }
    this.#synced = true;
  }

  /** Returns the lines. An incomplete last line, of a process that was killed, is none. */
  async load(): Promise<string[]> {
    if (this.items === undefined) {
      const text = await fs.promises.readFile(this.path ?? "", "utf8");
      this.items = text.split("\n").slice(0, -1).filter((line) => line.trim() !== ""); // ingest does not answer for a blank line
    }
    return this.items;
  }

  async remove(): Promise<void> {
    if (this.path !== undefined) await fs.promises.rm(this.path, { force: true });
  }
}

function bytesOf(lines: string[]): Buffer {
  return Buffer.from(lines.map((line) => `${line}\n`).join(""));
}

function syncDirectory(path: string): void {
  const directory = fs.openSync(path, "r");
  try {
    fs.fsyncSync(directory);
  } finally {
    fs.closeSync(directory);
  }
}

/** The directory of this process. Without a root, everything stays in memory. */
export class Spool {
  readonly agent: string | undefined;
  #own: string | undefined;
  #number = 0;

  constructor(root: string | undefined, agentId: string) {
    this.agent = root === undefined ? undefined : resolve(root, directoryOf(agentId)); // the agent may change its directory
  }

  /** Returns a new segment; throws if there can be no file. */
  segment(): Segment {
    return new Segment(this.agent === undefined ? undefined : this.#next("1"));
  }

  #next(prefix: string): string {
    return join(this.enter(), `${prefix}-${String(++this.#number).padStart(12, "0")}.jsonl`);
  }

  /** Makes the directory of this process, with its owner.json from the start. */
  enter(): string {
    const agent = this.agent as string;
    if (this.#own !== undefined && fs.existsSync(this.#own)) return this.#own;
    fs.mkdirSync(agent, { recursive: true, mode: 0o700 });
    const name = `${process.pid}-${randomBytes(4).toString("hex")}`;
    const fresh = join(agent, `.${name}`);
    fs.mkdirSync(fresh, { mode: 0o700 });
    writeOwner(fresh, process.pid);
    fs.renameSync(fresh, join(agent, name));
    syncDirectory(agent);
    syncDirectory(join(agent, ".."));
    return (this.#own = join(agent, name));
  }

  /** Shows processes on other hosts that this one lives. */
  async touch(): Promise<void> {
    if (this.#own !== undefined) await fs.promises.utimes(join(this.#own, "owner.json"), new Date(), new Date());
  }

  /** Takes over the files of dead owners, the oldest first. failed hears an error, which is about one owner and concerns no other. */
  async adopt(failed: (error: unknown) => void): Promise<Segment[]> {
    if (this.agent === undefined || !fs.existsSync(this.agent)) return [];
    const dead: { path: string; at: number }[] = [];
    for (const name of await fs.promises.readdir(this.agent)) {
      const path = join(this.agent, name);
      if (path === this.#own || name.startsWith(".") || alive(path)) continue;
      dead.push({ path, at: fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 });
    }
    const taken: Segment[] = [];
    for (const { path } of dead.sort((a, b) => a.at - b.at)) {
      try {
        for (const name of (await fs.promises.readdir(path)).sort()) {
          if (name.endsWith(".jsonl")) await this.#take(join(path, name), taken);
        }
        await fs.promises.rm(join(path, "owner.json"), { force: true });
        await fs.promises.rmdir(path).catch(() => undefined); // another process may be taking the rest
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") failed(error); // ENOENT: another process has taken it all
      }
    }
    return taken;
  }

  async #take(file: string, taken: Segment[]): Promise<void> {
    const own = this.#next("0");
    try {
      await fs.promises.rename(file, own);
      taken.push(await Segment.ofFile(own));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error; // ENOENT: another process was first
    }
  }

  /** Gives the directory up: what is left in it is for the next process, or recorder. */
  leave(): void {
    if (this.#own === undefined) return;
    if (fs.readdirSync(this.#own).some((name) => name.endsWith(".jsonl"))) writeOwner(this.#own, 0);
    else fs.rmSync(this.#own, { recursive: true, force: true });
    this.#own = undefined;
  }
}

function writeOwner(directory: string, pid: number): void {
  const path = join(directory, "owner.json");
  fs.writeFileSync(`${path}.new`, JSON.stringify({ host: hostname(), pid, started: started(pid) }));
  fs.renameSync(`${path}.new`, path);
}

/** Returns boot and start of a process that runs, which its id alone does not identify. Empty if unknown. */
function started(pid: number): string {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const boot = fs.readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    return fields[0] === "Z" || fields[0] === "X" ? "" : `${boot}:${fields[19] ?? ""}`;
  } catch {
    return "";
  }
}

/** Reports whether the owner of a directory may still write to it. */
export function alive(directory: string): boolean {
  const path = join(directory, "owner.json");
  let owner: { host?: unknown; pid?: unknown; started?: unknown } = {};
  try {
    owner = JSON.parse(fs.readFileSync(path, "utf8")) as typeof owner;
  } catch {
    // As on another host: its age decides.
  }
  if (owner.host !== hostname() || typeof owner.pid !== "number") {
    const at = fs.statSync(path, { throwIfNoEntry: false }) ?? fs.statSync(directory, { throwIfNoEntry: false });
    return at === undefined || Date.now() - at.mtimeMs < FOREIGN_MILLISECONDS;
  }
  if (owner.pid <= 0) return false;
  if (process.platform === "win32") return true;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  return owner.started === "" || owner.started === started(owner.pid);
}
