package bench

import "context"

// Bounds of the scenario Agents: how many agents work at most, and the fleet that it compares with.
const (
	mostAtWork = 50_000
	fewAgents  = 200
)

// Agents measures how fast a stage works through a backlog of many agents, beside one of as many
// traces of few agents. Of more than mostAtWork agents, the others only have cards.
func Agents(ctx context.Context, cfg Config) (*Result, error) {
	all := cfg.Agents
	cfg.Agents = min(all, mostAtWork)
	many := cfg.newLoad()
	many.copies = max(0, all-len(many.cards))
	cfg.Agents = fewAgents
	few := cfg.newLoad()
	cfg.Agents = all
	drain := drainOf(cfg.Stage)
	return rounds(ctx, "agents", &cfg, many, func(ctx context.Context, cfg *Config, l *load, n int) (run, beside *measured, err error) {
		if run, beside, err = drain.measure(ctx, cfg, l, n); err != nil {
			return nil, nil, err
		}
		alone := *cfg
		alone.WithoutFloor, alone.Profile = true, ""
		reference, _, err := drain.measure(ctx, &alone, few, n)
		if err != nil {
			return nil, nil, err
		}
		if run.other == nil { // drift has none
			run.other = figures{}
		}
		run.other["agents"], run.other["cards"] = float64(cfg.Agents), float64(len(l.cards)+l.copies)
		run.other["few_rate"] = float64(len(few.records)) / reference.took.Seconds()
		run.other["of_few"] = float64(len(l.records)) / run.took.Seconds() / run.other["few_rate"]
		for name, v := range reference.other {
			run.other["few_"+name] = v
		}
		run.other["few_cpu_us_sum"] = reference.cpu().sum()
		return run, beside, nil
	})
}
