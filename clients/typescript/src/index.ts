/**
 * Puts what an agent decides on record: a recorder of AP-Traces (Agent Alignment Protocol).
 *
 *     import { Recorder } from "plumbline";
 *
 *     const recorder = new Recorder({ agentId: "did:web:shop.example", cardId: "ac-shop-1" });
 *     const session = recorder.session();
 *     session.record({ action: "search", parameters: { query: "kettle" }, values: ["honesty"] });
 *     session.end();
 *
 * A Recorder builds traces that Plumbline's ingest accepts, and delivers them in the background. It
 * owns the spool directory that keeps them until ingest has answered, and the repetitions. It
 * does not judge traces: that is the verifier's.
 *
 * Invariants: nothing throws into the agent, except wrong settings, registerCard and the functions
 * that a tool wraps; the bytes of a trace are built once and never change; what is not delivered is
 * in the spool, or is counted and reported. docs/CLIENTS.md has the rest.
 */
export { Key } from "./keys.js";
export { Recorder } from "./recorder.js";
export type { RecorderOptions, SessionOptions } from "./recorder.js";
export { PlumblineError } from "./report.js";
export type { ErrorKind, Fault, OnError, OnWarning } from "./report.js";
export { Session } from "./session.js";
export type { ToolOptions } from "./session.js";
export type { Stats } from "./delivery.js";
export type { Alternative, Category, Decision, Escalation, Execution, Type } from "./trace.js";
