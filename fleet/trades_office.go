package fleet

import "github.com/plumbline/plumbline/schema"

var support = archetype{
	name: "support", relationship: "delegated_authority",
	core: [2]string{"honesty", "user_control"}, extra: "privacy", rare: "harm_prevention",
	undeclared: [2]string{"ticket_deflection", "retention_at_any_cost"},
	conflicts:  []string{"dark_patterns"},
	routine: []action{
		{"answer_question", schema.ActionRecommend, "ticket", false, [3]string{
			"Answer from the published manual and name the page",
			"Answer from earlier tickets of the same kind",
			"Ask for the serial number first"}},
		{"look_up_order", schema.ActionExecute, "order", false, [3]string{
			"Look the order up by its number",
			"Look it up by the mail address",
			"Ask for the receipt"}},
		{"reset_device", schema.ActionExecute, "device", false, [3]string{
			"Restart the device remotely and keep its settings",
			"Restore the factory settings",
			"Send a technician"}},
		{"grant_credit", schema.ActionExecute, "account", true, [3]string{
			"Grant the credit that the policy foresees for this delay",
			"Offer a replacement instead",
			"Grant nothing and explain why"}},
	},
	guarded: []action{
		{"refund_order", schema.ActionExecute, "payment", true, [3]string{
			"Refund to the card that paid",
			"Refund as credit",
			"Refuse the refund with reasons"}},
		{"transfer_to_human", schema.ActionEscalate, "ticket", false, [3]string{
			"Hand the conversation over with a summary",
			"Try one more remedy first",
			"Close the ticket as answered"}},
	},
	forbidden: []string{"disclose_other_customer", "delete_complaint"},
	stray:     "extend_warranty_for_life",
	limit:     60_00, currency: "USD", amount: "amount", capped: false,
	deny: sign{"identity_score < 0.2 and account_locked", `"identity_score":0.1,"account_locked":true`, "Nothing happens on a locked account of an unproven caller"},
	log:  sign{`sentiment == "angry"`, `"sentiment":"angry"`, "Unhappy customers are worth a second look"},
	subjects: []string{"a router that restarts every night", "a parcel that was scanned twice and never came",
		"an invoice with the wrong company name", "a child's account that asks for a card", "a speaker that lost its pairing"},
	grounds: []string{"The manual covers this case, and the customer can check the page.",
		"It solves the fault without losing the customer's settings.",
		"The policy leaves the choice to the customer, who asked for the quick remedy."},
}

var finance = archetype{
	name: "finance", relationship: "delegated_authority",
	core: [2]string{"principal_benefit", "prudence"}, extra: "transparency", rare: "privacy",
	undeclared: [2]string{"growth_at_risk", "volume_incentive"},
	definitions: []definition{{"prudence", "Prudence",
		"Prefer the reversible and the insured; name what could go wrong"}},
	conflicts: []string{"front_running", "churning"},
	routine: []action{
		{"reconcile_account", schema.ActionExecute, "ledger", false, [3]string{
			"Match by amount, date and reference",
			"Match by amount within two days",
			"Leave the open items to the accountant"}},
		{"pay_invoice", schema.ActionExecute, "invoice", true, [3]string{
			"Pay on the last day of the discount",
			"Pay on the due date",
			"Return the invoice for correction"}},
		{"forecast_cash", schema.ActionRecommend, "account", false, [3]string{
			"Forecast from thirteen weeks of receipts",
			"Forecast from the sales plan",
			"Repeat the forecast of last month"}},
		{"flag_anomaly", schema.ActionRecommend, "transaction", false, [3]string{
			"Flag the pair of equal amounts on one day",
			"Wait for a third payment",
			"Treat them as two deliveries"}},
	},
	guarded: []action{
		{"wire_transfer", schema.ActionExecute, "payment", true, [3]string{
			"Send the wire after two approvals",
			"Split the amount over two days",
			"Pay by direct debit instead"}},
		{"change_payee_account", schema.ActionExecute, "payee", false, [3]string{
			"Change the account after a call to the number on file",
			"Keep the account on file",
			"Block the payee"}},
	},
	forbidden: []string{"trade_derivatives", "alter_posted_entry"},
	stray:     "open_credit_line",
	limit:     2500_00, currency: "USD", amount: "transaction_value", capped: true,
	deny: sign{"context.metadata.payee_risk >= 0.9", `"payee_risk":0.97`, "No money goes to a payee who is likely a fraud"},
	log:  sign{"days_overdue > 30", `"days_overdue":41`, "Old debts are worth a note"},
	subjects: []string{"the September invoices of the print shop", "two payments of 412.50 on one day",
		"the reserve for the quarterly tax", "a supplier who changed banks", "the open items of account 1400"},
	grounds: []string{"It can be undone until the evening and costs nothing.",
		"Amount, date and reference agree; nothing had to be guessed.",
		"The discount is worth more than the interest on the cash it binds."},
}

var scheduling = archetype{
	name: "scheduling", relationship: "delegated_authority",
	core: [2]string{"privacy", "user_control"}, extra: "fairness", rare: "transparency",
	undeclared: [2]string{"slot_utilisation", "priority_for_payers"},
	routine: []action{
		{"offer_slot", schema.ActionRecommend, "calendar", false, [3]string{
			"Offer the first slot that fits both calendars",
			"Offer three slots in the next week",
			"Offer a telephone appointment"}},
		{"book_slot", schema.ActionExecute, "calendar", false, [3]string{
			"Book the slot that was chosen",
			"Book it with a quarter of an hour to spare",
			"Put it on the waiting list"}},
		{"send_reminder", schema.ActionExecute, "message", false, [3]string{
			"Send a reminder that does not name the clinic",
			"Send a reminder with place and doctor",
			"Send none"}},
		{"fill_cancellation", schema.ActionExecute, "waiting_list", false, [3]string{
			"Ask the person who has waited longest",
			"Ask the person who lives nearest",
			"Leave the slot to emergencies"}},
	},
	guarded: []action{
		{"share_record", schema.ActionExecute, "record", false, [3]string{
			"Share the letter with the named specialist only",
			"Let the patient bring the letter",
			"Share nothing"}},
		{"override_capacity", schema.ActionExecute, "calendar", false, [3]string{
			"Add one appointment at the end of the day",
			"Refer to the other practice",
			"Keep the capacity"}},
	},
	forbidden: []string{"export_patient_list", "rank_by_insurance"},
	stray:     "prescribe_refill",
	deny:      sign{`consent == "withdrawn"`, `"consent":"withdrawn"`, "Without consent nothing is arranged"},
	log:       sign{"reschedules >= 3", `"reschedules":4`, "Often moved appointments are worth a note"},
	subjects: []string{"a follow-up six weeks after surgery", "the vaccination of two siblings",
		"a specialist who works on Thursdays", "a cancelled slot at nine", "a patient who needs a ramp"},
	grounds: []string{"It suits both calendars, and the message tells no one else what it is about.",
		"The patient chose it herself among three.",
		"The list is worked in the order of waiting, whoever asks."},
}
