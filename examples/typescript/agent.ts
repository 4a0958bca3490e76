// An agent that buys for an office, and puts its five decisions on record.
//
//     (cd clients/typescript && npm ci)
//     clients/typescript/node_modules/.bin/tsc -p examples/typescript
//     node examples/typescript/agent.js [DIRECTORY]    (of card.json)
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Recorder, type Session } from "../../clients/typescript/dist/index.js"; // in a project of your own: from "plumbline"

const directory = process.argv[2] ?? "examples";
const card = readFileSync(join(directory, "card.json"), "utf8");
const ids = JSON.parse(card);
const recorder = new Recorder({ agentId: ids.agent_id, cardId: ids.card_id }); // ingest: PLUMBLINE_URL, PLUMBLINE_TOKEN
console.log("card", await recorder.registerCard(card));

const LIMIT = "amount > 100"; // the escalation trigger of the card

async function buy(shop: string, item: string, amount: number): Promise<{ order: string }> {
  return { order: `${shop}-5521` };
}

async function shop(session: Session): Promise<void> {
  // Each call of a tool is a trace: its arguments, its result or its exception, and how long it took.
  const search = session.tool(
    {
      name: "search_offers", values: ["principal_benefit"], reasoning: "Approved shops deliver on account, and three of them have paper.",
      alternatives: [
        { option_id: "approved", description: "search the shops that the office has approved", score: 0.9 },
        { option_id: "anywhere", description: "search every shop", score: 0.5 },
      ],
      selected: "approved",
    },
    async (item: string) => ({ papermill: 84, officeking: 79, bulkbuy: 60 }),
  );
  await search("paper, 20 reams");

  session.record({
    action: "compare_offers", type: "recommend", parameters: { item: "paper, 20 reams" },
    alternatives: [
      { option_id: "papermill", description: "Papermill: 84 EUR, delivered in 2 days", score: 0.8 },
      { option_id: "officeking", description: "Officeking: 79 EUR, delivered in 9 days", score: 0.6 },
      { option_id: "bulkbuy", description: "Bulkbuy: 60 EUR, seller unknown", score: 0.4 },
    ],
    selected: "papermill", reasoning: "The paper is needed this week. Bulkbuy is cheaper, but its seller is unknown.",
    values: ["principal_benefit", "transparency"], confidence: 0.8,
  });

  // 84 EUR: the agent may decide by itself.
  const small = session.tool(
    {
      name: "purchase", values: ["principal_benefit"], reasoning: "The price is below the limit of 100 EUR, so no approval is needed.",
      alternatives: ["buy", "wait for a lower price"], selected: "buy",
      escalation: (p) => ({ triggers_checked: [{ trigger: LIMIT, matched: Number(p["amount"]) > 100, value_observed: p["amount"] }], required: false }),
    },
    buy,
  );
  await small("papermill", "paper, 20 reams", 84);

  // 640 EUR: the office manager has approved it.
  const approved = new Date().toISOString();
  const large = session.tool(
    {
      name: "purchase", category: "escalation_trigger", values: ["principal_benefit", "transparency"],
      reasoning: "The employee needs the desk, and 640 EUR is above the limit.", alternatives: ["ask", "decline"], selected: "ask",
      escalation: {
        triggers_checked: [{ trigger: LIMIT, matched: true, value_observed: 640 }], required: true,
        reason: "a purchase above 100 EUR needs the approval of the office manager", escalation_id: "ask-77",
        escalation_status: "approved", principal_response: { decision: "approved", timestamp: approved, conditions: ["amount <= 700"] },
      },
    },
    buy,
  );
  await large("deskworks", "standing desk", 640);

  // 180 EUR without asking: the verifier will report a MISSED_ESCALATION.
  const unasked = session.tool(
    {
      name: "purchase", values: ["principal_benefit"], reasoning: "The printer is empty, and the office manager is in a meeting.",
      alternatives: ["now", "ask"], selected: "now",
    },
    buy,
  );
  await unasked("papermill", "toner, 4 cartridges", 180);
}

const session = recorder.session();
await shop(session);
session.end();
console.log("session", session.sessionId, (await recorder.close()) ? "stored" : "waits in the spool");
console.log(recorder.stats());
