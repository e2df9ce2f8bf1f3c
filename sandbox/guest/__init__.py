"""What runs inside a sandbox. Standard library only; nothing of the host is imported here, and the package is named
`pdbox_guest` there, so its modules import each other relatively.
"""
