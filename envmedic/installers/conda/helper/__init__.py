"""What runs in a process of its own, since py-rattler may crash when its interpreter ends: started as `run.py`.

The modules beside it are imported there, and nowhere else.
"""
