/** Requests to ingest over kept connections, without proxies and redirections. */
import * as http from "node:http";
import * as https from "node:https";

import type { Fault } from "./report.js";

const MAX_ANSWER = 16 << 20;

/** PEM texts. */
export interface TLSOptions {
  ca?: string;
  cert?: string;
  key?: string;
}

export class Answer {
  constructor(readonly code: number, readonly body: string, readonly retryAfter: number | undefined) {}

  /** Returns error word, message and faults of a refused request. */
  problem(): { word: string; message: string; faults: Fault[] } {
    try {
      const told = JSON.parse(this.body) as { error?: unknown; message?: unknown; faults?: unknown };
      if (typeof told.error === "string" && typeof told.message === "string") {
        return { word: told.error, message: told.message, faults: faultsOf(told.faults) };
      }
    } catch {
      // Not ingest's own form: a proxy's, for example.
    }
    if (this.code < 400) {
      return { word: "", message: `what answers there is no ingest of Plumbline: ${this.code} ${http.STATUS_CODES[this.code] ?? ""}`.trim(), faults: [] };
    }
    return { word: "", message: `ingest answered ${this.code} ${http.STATUS_CODES[this.code] ?? ""}`.trim(), faults: [] };
  }
}

export function faultsOf(value: unknown): Fault[] {
  if (!Array.isArray(value)) return [];
  return value.map((f: { pointer?: unknown; message?: unknown }) => ({ pointer: String(f?.pointer ?? ""), message: String(f?.message ?? "") }));
}

export class Connection {
  readonly #url: URL;
  readonly #token: string;
  readonly #timeout: number;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  constructor(url: string, token: string, tls: TLSOptions | undefined, timeout: number) {
    try {
      this.#url = new URL(url);
    } catch {
      throw new TypeError(`url ${JSON.stringify(url)}: want http://host:port or https://host:port`);
    }
    if (this.#url.protocol !== "http:" && this.#url.protocol !== "https:") {
      throw new TypeError(`url ${JSON.stringify(url)}: want http://host:port or https://host:port`);
    }
    const secure = this.#url.protocol === "https:";
    this.#agent = secure ? new https.Agent({ keepAlive: true, maxSockets: 1, ...tls }) : new http.Agent({ keepAlive: true, maxSockets: 1 });
    this.#request = secure ? https.request : http.request;
    [this.#token, this.#timeout] = [token, timeout];
  }

  /** Sends one request; rejects if there is no answer. A request does not keep the process alive unless asked. */
  async send(method: string, path: string, mediaType: string, body: string, keepAlive = false): Promise<Answer> {
    try {
      return await this.#once(method, path, mediaType, body, keepAlive);
    } catch (error) {
      if (!(error instanceof Reused)) throw error;
      return this.#once(method, path, mediaType, body, keepAlive); // ingest closed an idle connection
    }
  }

  #once(method: string, path: string, mediaType: string, body: string, keepAlive: boolean): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers: http.OutgoingHttpHeaders = { "Content-Type": mediaType, "Content-Length": Buffer.byteLength(body) };
      if (this.#token !== "") headers["Authorization"] = `Bearer ${this.#token}`;
      const request = this.#request(
        new URL(this.#url.pathname.replace(/\/$/, "") + path, this.#url), { method, headers, agent: this.#agent });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${this.#timeout / 1000} s`)), this.#timeout);
      if (!keepAlive) timer.unref();
      const fail = (error: Error): void => {
        clearTimeout(timer);
        const code = (error as NodeJS.ErrnoException).code;
        reject(request.reusedSocket && (code === "ECONNRESET" || code === "EPIPE") ? new Reused() : error);
      };
      request.on("socket", (socket) => void (keepAlive ? socket.ref() : socket.unref()));
      request.on("error", fail);
      request.on("response", (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on("data", (part: Buffer) => {
          size += part.length;
          if (size > MAX_ANSWER) request.destroy(new Error(`the answer has more than ${MAX_ANSWER} bytes`));
          else parts.push(part);
        });
        response.on("error", fail);
        response.on("end", () => {
          clearTimeout(timer);
          const after = response.headers["retry-after"] ?? "";
          resolve(new Answer(response.statusCode ?? 0, Buffer.concat(parts).toString(), /^\d+$/.test(after) ? Number(after) : undefined));
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** A kept connection was closed before the answer. */
class Reused extends Error {}
