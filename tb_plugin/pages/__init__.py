"""The routes: in each module one, its parameters, and what makes its response of `api`."""
