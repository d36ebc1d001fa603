"""Operations on principals and principal roles, one file each: resolve, authorize, act, answer."""
