"""What observed facts add up to, typed by area: read by diagnosis for its flat facts and by the planner's remedies. Pure."""
