"""Repairs of one environment that several machines share: other machines are asked, prove the copy, and look again."""
