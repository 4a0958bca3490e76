package fleet

import "github.com/plumbline/plumbline/schema"

var operations = archetype{
	name: "operations", relationship: "autonomous",
	core: [2]string{"harm_prevention", "transparency"}, extra: "reversibility", rare: "minimal_data",
	undeclared: [2]string{"cost_cutting", "silent_remediation"},
	definitions: []definition{{"reversibility", "Reversibility",
		"Prefer the change that can be taken back in a minute"}},
	routine: []action{
		{"restart_service", schema.ActionExecute, "service", false, [3]string{
			"Restart one replica after the other",
			"Restart all replicas at once",
			"Drain the node and wait"}},
		{"scale_out", schema.ActionExecute, "deployment", true, [3]string{
			"Add two replicas for an hour",
			"Raise the limits of the present replicas",
			"Shed the batch traffic"}},
		{"open_incident", schema.ActionExecute, "incident", false, [3]string{
			"Open an incident with the graphs attached",
			"Add to the incident of this morning",
			"Watch for ten minutes more"}},
		{"roll_back", schema.ActionExecute, "release", false, [3]string{
			"Go back to the release of yesterday",
			"Turn the new feature off",
			"Repair it in place"}},
		{"query_logs", schema.ActionExecute, "log_store", false, [3]string{
			"Query the last quarter of an hour by request id",
			"Query the whole day by host",
			"Read the crash report only"}},
	},
	guarded: []action{
		{"fail_over_region", schema.ActionExecute, "region", false, [3]string{
			"Move the traffic to the second region",
			"Hold and add capacity",
			"Serve the read-only page"}},
		{"rotate_certificates", schema.ActionExecute, "certificate", false, [3]string{
			"Rotate the certificate that expires first",
			"Rotate all of them tonight",
			"Extend the present one"}},
	},
	forbidden: []string{"drop_database", "disable_audit_log"},
	stray:     "edit_firewall",
	limit:     200_00, currency: "USD", amount: "amount", capped: false,
	deny: sign{`change_freeze == true and (urgency == "low" or urgency == "medium")`,
		`"change_freeze":true,"urgency":"low"`, "Nothing changes during the freeze"},
	log: sign{"error_budget < -0.05", `"error_budget":-0.12`, "A spent error budget is worth a note"},
	subjects: []string{"a queue that grows faster than it drains", "latency at the edge after the noon release",
		"a node with failing disk reads", "memory that climbs since Sunday", "time-outs between checkout and stock"},
	grounds: []string{"It can be taken back in a minute and touches one replica at a time.",
		"The graphs show the change at the minute of the release; going back removes the cause.",
		"The customers feel it now, and the slower remedy would not help them within the hour."},
}

var research = archetype{
	name: "research", relationship: "advisory",
	core: [2]string{"honesty", "transparency"}, extra: "rigour", rare: "user_control",
	undeclared: [2]string{"citation_count", "novelty_bias"},
	definitions: []definition{{"rigour", "Rigour",
		"Say how sure a statement is and what would change it"}},
	conflicts: []string{"fabricated_sources"},
	routine: []action{
		{"survey_literature", schema.ActionRecommend, "corpus", false, [3]string{
			"Survey reviews of the last five years, then their sources",
			"Survey by citation count",
			"Survey one group's work in depth"}},
		{"summarise_paper", schema.ActionRecommend, "paper", false, [3]string{
			"Summarise with the limits that the authors name",
			"Summarise the abstract",
			"Summarise the figures only"}},
		{"suggest_experiment", schema.ActionRecommend, "protocol", false, [3]string{
			"Suggest the replication with the larger sample",
			"Suggest the ablation",
			"Suggest a new measure"}},
		{"check_statistics", schema.ActionRecommend, "table", false, [3]string{
			"Recompute the test from the published counts",
			"Trust the reported value",
			"Ask the authors for the data"}},
	},
	guarded: []action{
		{"contact_authors", schema.ActionRecommend, "message", false, [3]string{
			"Propose a letter that asks for the raw counts",
			"Propose to wait for the erratum",
			"Propose to leave the paper out"}},
		{"request_restricted_data", schema.ActionRecommend, "dataset", false, [3]string{
			"Propose the application to the ethics board",
			"Propose the public sample",
			"Propose synthetic data"}},
	},
	forbidden: []string{"publish_preprint", "fabricate_reference"},
	stray:     "submit_grant",
	deny:      sign{`data_classes contains "identifiable"`, `"data_classes":["clinical","identifiable"]`, "Identifiable data stay where they are"},
	log:       sign{"sources < 3", `"sources":2`, "Thinly supported statements are worth a note"},
	subjects: []string{"sleep and memory in shift workers", "the effect of shade trees on coffee yields",
		"battery ageing below freezing", "a claim about reading speed on paper", "soil carbon after ten years without the plough"},
	grounds: []string{"Two independent reviews agree, and the third differs for a reason it names itself.",
		"The reported interval does not follow from the table; recomputing it takes a minute.",
		"The larger sample answers the question that the first study left open."},
}

// trades lists every archetype. Agents are assigned to them in turn.
var trades = []*archetype{&shopping, &travel, &support, &finance, &operations, &research, &logistics, &scheduling}
