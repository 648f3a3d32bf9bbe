"""What a schedule costs: its calls in time, the time no schedule can beat, traces to look at."""
