"""Puts what an agent decides on record: a recorder of AP-Traces (Agent Alignment Protocol).

    from plumbline import Recorder

    recorder = Recorder(agent_id="did:web:shop.example", card_id="ac-shop-1")
    with recorder.session() as session:
        session.record(action="search", parameters={"query": "kettle"}, values=["honesty"])

A Recorder builds traces that Plumbline's ingest accepts, and delivers them in the
background. It owns the spool directory that keeps them until ingest has answered, and
the repetitions. It does not judge traces: that is the verifier's.

Invariants: nothing raises into the agent, except wrong settings, register_card and the
functions that a tool wraps; the bytes of a trace are built once and never change; what is
not delivered is in the spool, or is counted and reported. docs/CLIENTS.md has the rest.
"""
from ._keys import Key
from ._recorder import Recorder
from ._report import Fault, PlumblineError
from ._session import Session

__all__ = ["Fault", "Key", "PlumblineError", "Recorder", "Session"]
__version__ = "0.1.0"
