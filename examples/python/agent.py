"""An agent that buys for an office, and puts its five decisions on record.

    PYTHONPATH=clients/python python3 examples/python/agent.py [DIRECTORY]    (of card.json)
"""
import json
import logging
import os
import sys
from datetime import datetime, timezone

from plumbline import Recorder

logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")

directory = sys.argv[1] if len(sys.argv) > 1 else "examples"
with open(os.path.join(directory, "card.json"), "rb") as file:
    card = file.read()
ids = json.loads(card)
recorder = Recorder(agent_id=ids["agent_id"], card_id=ids["card_id"])  # ingest: PLUMBLINE_URL, PLUMBLINE_TOKEN
print("card", recorder.register_card(card))

LIMIT = "amount > 100"  # the escalation trigger of the card


# Each call of these functions is a trace: its arguments, its result or its exception, and how long it took.
@recorder.tool(values=["principal_benefit"], reasoning="Approved shops deliver on account, and three of them have paper.",
               alternatives=[{"option_id": "approved", "description": "search the shops that the office has approved", "score": 0.9},
                             {"option_id": "anywhere", "description": "search every shop", "score": 0.5}], selected="approved")
def search_offers(item):
    return {"papermill": 84, "officeking": 79, "bulkbuy": 60}


def buy(shop, item, amount):
    return {"order": f"{shop}-5521"}


with recorder.session() as session:
    offers = search_offers("paper, 20 reams")
    session.record(
        "compare_offers", type="recommend", parameters={"item": "paper, 20 reams"},
        alternatives=[{"option_id": "papermill", "description": "Papermill: 84 EUR, delivered in 2 days", "score": 0.8},
                      {"option_id": "officeking", "description": "Officeking: 79 EUR, delivered in 9 days", "score": 0.6},
                      {"option_id": "bulkbuy", "description": "Bulkbuy: 60 EUR, seller unknown", "score": 0.4}],
        selected="papermill", reasoning="The paper is needed this week. Bulkbuy is cheaper, but its seller is unknown.",
        values=["principal_benefit", "transparency"], confidence=0.8)

    # 84 EUR: the agent may decide by itself.
    purchase = session.tool(
        buy, name="purchase", values=["principal_benefit"], reasoning="The price is below the limit of 100 EUR, so no approval is needed.",
        alternatives=["buy", "wait for a lower price"], selected="buy",
        escalation=lambda p: {"triggers_checked": [{"trigger": LIMIT, "matched": p["amount"] > 100, "value_observed": p["amount"]}], "required": False})
    purchase("papermill", "paper, 20 reams", 84)

    # 640 EUR: the office manager has approved it.
    approved = datetime.now(timezone.utc)
    purchase = session.tool(
        buy, name="purchase", category="escalation_trigger", values=["principal_benefit", "transparency"],
        reasoning="The employee needs the desk, and 640 EUR is above the limit.", alternatives=["ask", "decline"], selected="ask",
        escalation={"triggers_checked": [{"trigger": LIMIT, "matched": True, "value_observed": 640}], "required": True,
                    "reason": "a purchase above 100 EUR needs the approval of the office manager", "escalation_id": "ask-77",
                    "escalation_status": "approved", "principal_response": {"decision": "approved", "timestamp": approved, "conditions": ["amount <= 700"]}})
    purchase("deskworks", "standing desk", 640)

    # 180 EUR without asking: the verifier will report a MISSED_ESCALATION.
    purchase = session.tool(
        buy, name="purchase", values=["principal_benefit"], reasoning="The printer is empty, and the office manager is in a meeting.",
        alternatives=["now", "ask"], selected="now")
    purchase("papermill", "toner, 4 cartridges", 180)

print("session", session.session_id, "stored" if recorder.close() else "waits in the spool")
print(recorder.stats())
