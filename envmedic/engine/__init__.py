"""Transactions: clone, repair, prove and exchange an environment, and the way back. Everything that writes is here."""
