"""Behavioural memory: what a person does with files, recorded as events, condensed into sessions, habits and changes of habit.

`events` and `log` keep what happened, `collect` makes events of operations, `engram` condenses a session, `consolidate` all
sessions, `habits` says it. Nothing here uses a model or a network.
"""
